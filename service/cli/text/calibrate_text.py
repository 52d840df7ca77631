"""A calibration as text: what was read, what was fitted, how well, and what stayed."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from costmodel.units import format_rate
from service.cli.text.accuracy_text import percent
from service.cli.text.quantities import seconds
from service.cli.text.tables import remarks, some, table

Document = dict[str, Any]

NUMBERS = ("number", ">measured", ">+-", ">before", ">points", "confidence")
ERRORS = ("step times", ">rows", ">median", ">mean", ">p90", ">bias")
MOST_REMARKS = 12


def show_calibration(document: Document) -> RenderableType:
    """The files, then every profile."""
    files = [(file["path"], file["kind"], str(file["points"])) for file in document["files"]]
    return Group(
        table("Read", ("file", "kind", ">points"), files),
        *(part for profile in document["profiles"] for part in profile_parts(profile)),
    )


def profile_parts(profile: Document) -> Iterator[RenderableType]:
    """One profile: its numbers, its errors, what stayed as it was."""
    rows = [number_cells(number) for number in profile["numbers"]]
    yield table(f"{profile['kind']}: {profile['path']}", NUMBERS, rows)
    if profile["errors"]:
        yield table("", ERRORS, [*error_rows(profile["errors"])])
    residuals = [
        f"{name}: {percent(one['median'])} median, {percent(one['p90'])} p90, "
        f"{percent(one['worst'])} worst ({one['worst_where']}), {one['n']} points"
        for name, one in profile["residuals"].items()
    ]
    yield remarks("Errors of the fitted law", residuals, style="bold")
    kept = [some(profile["kept"], most=12)] if profile["kept"] else []
    yield remarks("Not measured, as bundled", kept, style="dim")
    told = profile["remarks"]
    more = [f"and {len(told) - MOST_REMARKS} more"] if len(told) > MOST_REMARKS else []
    yield remarks("Remarks", [*told[:MOST_REMARKS], *more], style="dim")
    yield Text()


def number_cells(number: Document) -> tuple[str, ...]:
    """One fitted number; its uncertainty is that of its logarithm."""
    return (
        number["name"],
        quantity_text(number["value"], number["unit"]),
        percent(number["relative_sd"]),
        "-" if number["before"] is None else quantity_text(number["before"], number["unit"]),
        str(number["points"]),
        number["confidence"],
    )


def quantity_text(value: float, unit: str) -> str:
    """A value in SI units for people."""
    if unit == "us":
        return seconds(value)
    if unit:
        return format_rate(value, "FLOP/s" if "FLOP" in unit else "B/s")
    return f"{value:.3g}"


def error_rows(errors: Mapping[str, Document | None]) -> Iterator[tuple[str, ...]]:
    """Errors before and after the fit, and of models held out."""
    for name, one in errors.items():
        if one is not None:
            figures = (percent(one[key]) for key in ("median", "mean", "p90", "bias"))
            yield name.replace("_", " "), str(one["n"]), *figures
