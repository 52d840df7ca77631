"""Writes fitted constants into the software profiles."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from costmodel.calibration.fit import (
    Fitted,
    Near,
    Pooled,
    Spreads,
    model_key,
    own_constants,
)
from costmodel.calibration.widths import OwnWidths, Widths
from costmodel.software.values import CONSTANTS

MOVED = 0.02
"""A stack's profile states a constant that differs by more than this, relatively, from the
default's."""

NOTE = "# Fitted by costmodel/calibration/fit.py: effective values, which trade off.\n"


def write_profiles(
    folder: Path, pooled: Pooled, near: Mapping[str, Near], between: Spreads
) -> None:
    """The default profile with all its constants, and each stack's with those that differ."""
    own = own_constants(pooled, near, between)
    rows = sum(len(one.cases) for one in pooled.samples.values())
    stacks = len(pooled.samples)
    _write(
        folder / "default.yaml",
        _entries(pooled.fitted, folder / "default.yaml", between=between),
        f"{{rows: {rows}, stacks: {stacks}}}",
    )
    for name, fitted in own.items():
        path = folder / f"{name}.yaml"
        if path.exists():
            cases = near[name].sample.cases
            models = len({model_key(case) for case in cases})
            entries = _entries(fitted, path, beside=pooled.fitted)
            _write(path, entries, f"{{rows: {len(cases)}, models: {models}}}")


def _entries(
    fitted: Fitted, path: Path, *, beside: Fitted | None = None, between: Spreads | None = None
) -> list[str]:
    """One line a constant; those that are not fitted stay as the file has them."""
    _, _, stated = path.read_text(encoding="utf-8").partition("efficiency:\n")
    kept = {line.split(":")[0]: line for line in stated.splitlines()}
    efficiency = fitted.efficiency
    pairs = zip(fitted.parameters, fitted.deviation, strict=True)
    deviation = {p.name: float(sd) for p, sd in pairs}
    named = zip(fitted.parameters, between.all if between else (), strict=between is not None)
    apart = {p.name: f", between: {spread:.2f}" for p, spread in named}
    lines: list[str] = []
    for name in CONSTANTS:
        value = getattr(efficiency, name)
        if name in deviation:
            known = getattr(beside.efficiency, name) if beside else None
            if known is None or abs(value / known - 1.0) > MOVED:
                doubt = f"sd: {deviation[name]:.2f}{apart.get(name, '')}"
                lines.append(f"  {name}: {{value: {yaml_number(value)}, fitted: true, {doubt}}}")
        elif f"  {name}" in kept:
            lines.append(kept[f"  {name}"])
        elif beside is None:
            lines.append(f"  {name}: {{value: {yaml_number(value)}}}")
    return lines


def yaml_number(value: float | bool) -> str:
    """Three digits, in a form that YAML 1.1 reads as a number."""
    if isinstance(value, bool):
        return str(value).lower()
    rounded = float(np.format_float_positional(value, precision=3, fractional=False))
    if 1e-3 <= abs(rounded) < 1e6 or rounded == 0.0:
        return repr(rounded)
    mantissa, exponent = f"{rounded:.3e}".split("e")
    return f"{float(mantissa)}e{int(exponent):+d}"


def write_intervals(
    folder: Path, pooled: Mapping[str, Widths], own: Mapping[str, OwnWidths]
) -> None:
    """The half-widths of both protocols by regime, and those of stacks with enough runs."""
    path = folder / "intervals.yaml"
    head = path.read_text(encoding="utf-8").split("known:")[0]
    lines = [f"{name}: [{_listed(widths)}]" for name, widths in sorted(pooled.items())]
    lines.append("stacks:" if own else "stacks: {}")
    lines += [f"  {stack}: [{_listed(widths)}]" for stack, widths in own.items()]
    path.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def _listed(widths: OwnWidths) -> str:
    return ", ".join("null" if width is None else f"{width:.3f}" for width in widths)


def _write(path: Path, entries: Sequence[str], rows: str) -> None:
    head = path.read_text(encoding="utf-8").split(NOTE)[0].split("efficiency:\n")[0]
    body = f"{NOTE}fit: {rows}\nefficiency:{'' if entries else ' {}'}\n"
    text = head + body + "".join(f"{line}\n" for line in entries)
    path.write_text(text, encoding="utf-8")
