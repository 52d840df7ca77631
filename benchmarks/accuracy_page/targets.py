"""The lines that were aimed at: this model, an earlier one on today's rows, the aim."""

from typing import Any

import numpy as np

from benchmarks.accuracy_page.cells import NONE, share, table
from benchmarks.accuracy_page.time_tables import Findings, document

Values = dict[str, float | None]
PROTOCOLS = ("unknown stack", "known stack")

LINES = {
    "macro_tuned": "tuned, mean over stacks with at least 20 rows of the median",
    "median_tuned": "tuned, median",
    "mean_tuned": "tuned, mean",
    "macro_untuned": "untuned, mean over stacks of the median",
    "peak": "peak memory, median",
    "static": "static bytes of Megatron-LM's tests, median",
    "regret_vtrain": "choice of layout, vTrain's groups: mean loss",
    "regret_nanotron": "choice of layout, the Playbook's groups: median loss",
    "coverage": "rows inside their 90 % interval",
    "half_width_tuned": "half-width of tuned rows, median",
}

AIMS: dict[str, dict[str, str]] = {
    "macro_tuned": {"unknown stack": "9 %", "known stack": "5.5 %"},
    "median_tuned": {"unknown stack": "9 %", "known stack": "5 %"},
    "mean_tuned": {"unknown stack": "12 %", "known stack": "7.5 %"},
    "macro_untuned": {"unknown stack": "30 %", "known stack": "20 %"},
    "peak": {"unknown stack": "12 %", "known stack": "5 %"},
    "static": {"known stack": "2 %"},
    "regret_vtrain": {"unknown stack": "6 %", "known stack": "3 %"},
    "regret_nanotron": {"known stack": "5 %"},
    "coverage": {"unknown stack": "87 to 93 %", "known stack": "87 to 93 %"},
    "half_width_tuned": {"unknown stack": "22 %", "known stack": "15 %"},
}


def values(findings: Findings, view: str) -> Values:
    """This model's figures of one protocol, by the keys of ``LINES``."""
    found = document(findings, view)
    tuned, untuned = found["time_tuned"], found["time_untuned"]
    peaks = [e for errors in findings["memory"][view].values() for e in errors]
    shipped = document(findings, "as shipped")
    static = shipped["by_stack"].get("megatron-ci", {}).get("static_memory", {})
    return {
        "macro_tuned": tuned.get("macro_median"),
        "median_tuned": tuned.get("median_ape"),
        "mean_tuned": tuned.get("mape"),
        "macro_untuned": untuned.get("macro_median"),
        "peak": float(np.median(np.abs(peaks))) if peaks else None,
        "static": static.get("median_ape"),
        "regret_vtrain": _regret(found, "vtrain", "mean"),
        "regret_nanotron": _regret(found, "nanotron", "median"),
        "coverage": found["coverage"],
        "half_width_tuned": found["intervals_tuned"].get("half_width"),
    }


def _regret(found: Findings, stack: str, key: str) -> float | None:
    return found["by_stack"].get(stack, {}).get("regret", {}).get(key)


def compared(findings: Findings, earlier: dict[str, Any]) -> str:
    """A line a figure and three columns a protocol."""
    head = ["", *(f"{view}: {what}" for view in PROTOCOLS for what in ("ours", "earlier", "aim"))]
    own = {view: values(findings, view) for view in PROTOCOLS}
    rows = [[text, *_cells(key, own, earlier)] for key, text in LINES.items()]
    return table(head, rows)


def _cells(key: str, own: dict[str, Values], earlier: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for view in PROTOCOLS:
        aim = AIMS[key].get(view, NONE)
        found += [share(own[view][key]), share(earlier[view].get(key)), aim]
    return found


def by_stack(findings: Findings, earlier: dict[str, Any]) -> str:
    """Median and mean of the tuned rows of every stack, ours and the earlier model's."""
    head = ["stack", *(f"{view}: {who}" for view in PROTOCOLS for who in ("ours", "earlier"))]
    names = sorted(document(findings, PROTOCOLS[0])["by_stack"])
    rows = [[name, *_of_stack(findings, earlier, name)] for name in names]
    return table(head, [row for row in rows if row[1] != NONE])


def _of_stack(findings: Findings, earlier: dict[str, Any], name: str) -> list[str]:
    found: list[str] = []
    for view in PROTOCOLS:
        own = document(findings, view)["by_stack"].get(name, {}).get("time_tuned", {})
        other = earlier[view]["tuned_by_stack"].get(name)
        mine = f"{share(own['median_ape'])} / {share(own['mape'])}" if own.get("n") else NONE
        theirs = f"{share(other['median'])} / {share(other['mean'])}" if other else NONE
        found += [mine, f"{theirs} ({other['n']})" if other else theirs]
    return found
