"""Tables of step times: errors, choice of layout, intervals."""

from collections.abc import Iterator
from typing import Any

from benchmarks.accuracy_page.cells import NONE, median_and_mean, median_of, share, table

Findings = dict[str, Any]

VIEWS = ("unknown stack", "known stack", "as shipped")
"""Protocols first; the bundled profiles have seen the rows."""


def document(findings: Findings, view: str) -> Findings:
    """The document of one protocol."""
    return findings[view]["document"]


def whole(findings: Findings) -> str:
    """All rows, by protocol."""
    head = ["", "rows", "median", "mean", "p90", "bias", "mean of stacks"]
    rows = [
        [f"{view}, {kind}", *_figures(document(findings, view)[f"time_{kind}"])]
        for view in VIEWS
        for kind in ("tuned", "untuned")
    ]
    return table(head, rows)


def _figures(errors: Findings) -> list[str]:
    if not errors["n"]:
        return ["0", *[NONE] * 5]
    return [
        str(errors["n"]),
        *(share(errors[key]) for key in ("median_ape", "mape", "p90_ape")),
        share(errors["bias"], sign=True),
        share(errors["macro_median"]),
    ]


def by_stack(findings: Findings) -> str:
    """Every stack, under both protocols and as shipped."""
    head = [
        "stack",
        "tuned rows",
        "unknown: median / mean",
        "known: median / mean",
        "shipped: median / mean",
        "untuned rows",
        "unknown / known / shipped: median",
    ]
    return table(head, [_stack(findings, name) for name in _stacks(findings)])


def _stacks(findings: Findings) -> list[str]:
    return sorted(document(findings, "unknown stack")["by_stack"])


def _stack(findings: Findings, name: str) -> list[str]:
    views = [_of(findings, view, name) for view in VIEWS]
    tuned = [view.get("time_tuned", {}) for view in views]
    untuned = [view.get("time_untuned", {}) for view in views]
    return [
        name,
        str(tuned[0].get("n", 0)),
        *map(median_and_mean, tuned),
        str(untuned[0].get("n", 0)),
        " / ".join(map(median_of, untuned)),
    ]


def _of(findings: Findings, view: str, stack: str) -> Findings:
    return document(findings, view)["by_stack"].get(stack, {})


def choice(findings: Findings) -> str:
    """What the layout predicted fastest loses, by protocol and stack."""
    head = ["", "groups", "mean", "median", "p90"]
    return table(head, (row for view in VIEWS for row in _choices(findings, view)))


def _choices(findings: Findings, view: str) -> Iterator[list[str]]:
    found = document(findings, view)
    yield _regret(view, found["regret"])
    for name, own in found["by_stack"].items():
        if own["regret"]["groups"]:
            yield _regret(f"{view}, {name}", own["regret"])


def _regret(name: str, found: Findings) -> list[str]:
    keys = ("mean", "median", "p90")
    return [name, str(found["groups"]), *(share(found.get(key)) for key in keys)]


def intervals(findings: Findings) -> str:
    """How many rows lie inside their interval, and how wide it is."""
    head = [
        "",
        "rows",
        "inside",
        "half-width (median)",
        "tuned rows",
        "tuned: inside",
        "tuned: half-width",
    ]
    return table(head, (row for view in VIEWS[:2] for row in _interval_rows(findings, view)))


def _interval_rows(findings: Findings, view: str) -> Iterator[list[str]]:
    found = document(findings, view)
    for name, own in [(view, found), *((f"{view}, {k}", v) for k, v in found["by_stack"].items())]:
        tuned = own["intervals_tuned"]
        yield [
            name,
            str(own["time"]["n"]),
            share(own["coverage"]),
            share(own["half_width"]),
            str(tuned["n"]),
            share(tuned.get("coverage")),
            share(tuned.get("half_width")),
        ]
