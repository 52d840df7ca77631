"""What the columns of uniform layouts may hold: checked once, on whole columns."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from costmodel.errors import InputError, Violation
from costmodel.job import RECOMPUTE_MODES, Job
from costmodel.layout.rules_degrees import ZERO_STAGES

IntArray = NDArray[np.int64]

SCHEDULES = ("1f1b", "gpipe", "interleaved")
"""Schedules that the batch path runs; a row has the index of its own."""

MOST = 1_000_000
"""The largest degree: far above any cluster, and products of two stay exact."""

MOST_FAULTS = 20
"""Faults of one column that are named; a column of another kind has nothing but faults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What one column may hold. is_legal: of a written value; most, least: of its number."""

    is_legal: Callable[[object], bool]
    rule: str
    fix: str
    least: int
    most: int


def _whole(least: int, most: int) -> Callable[[object], bool]:
    def is_legal(value: object) -> bool:
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return whole and least <= int(cast("int", value)) <= most

    return is_legal


def _numbers(least: int, most: int, rule: str, fix: str) -> Allowed:
    return Allowed(is_legal=_whole(least, most), rule=rule, fix=fix, least=least, most=most)


def _names(known: Sequence[str], what: str) -> Allowed:
    return Allowed(
        is_legal=lambda value: isinstance(value, str) and value in known,
        rule=f"must be {what}",
        fix=f"use {', '.join(known)}",
        least=0,
        most=len(known) - 1,
    )


def _is_truth(value: object) -> bool:
    return isinstance(value, bool | np.bool_) or _whole(0, 1)(value)


_DEGREE = _numbers(1, MOST, f"must be a whole number from 1 to {MOST:,}", "write 1 or more")
ALLOWED: Mapping[str, Allowed] = {
    **dict.fromkeys(("tp", "pp", "vp", "cp", "ep", "etp", "dp", "mbs"), _DEGREE),
    "zero": _numbers(
        ZERO_STAGES[0],
        ZERO_STAGES[-1],
        "must be a ZeRO stage, 0 to 3",
        f"use {', '.join(map(str, ZERO_STAGES))}",
    ),
    "recompute": _names(RECOMPUTE_MODES, "a known recompute mode"),
    "sp": Allowed(
        is_legal=_is_truth, rule="must be true or false", fix="write True or False", least=0, most=1
    ),
    "schedule": _names(SCHEDULES, "a schedule that rows can have"),
}
"""By column."""

_UNSPLIT = Allowed(
    is_legal=lambda value: value in (None, "even"),
    rule="must be left out: rows split their layers evenly",
    fix="leave it out, or ask estimate for this layout",
    least=0,
    most=0,
)
SPLITS: Mapping[str, Allowed] = dict.fromkeys(("first", "last", "layers", "layout"), _UNSPLIT)
"""What a written layout may say of its layers."""


def check_axes(axes: Mapping[str, object]) -> None:
    """Raises InputError unless every column of a grid is a sequence of legal values."""
    _refuse(fault for name, axis in axes.items() for fault in _axis_faults(name, axis))


def _axis_faults(name: str, axis: Any) -> Iterator[Violation]:
    field = f"/{name}"
    if isinstance(axis, str) or not isinstance(axis, Sequence | np.ndarray):
        rule, fix = "must be a sequence of values", f"write ({axis!r},)"
        yield Violation(field=field, value=axis, rule=rule, fix=fix)
        return
    values = list(cast("Sequence[object]", axis))
    if not values:
        rule, fix = "must hold a value", f"{ALLOWED[name].fix}, or leave it out"
        yield Violation(field=field, value=values, rule=rule, fix=fix)
    yield from _faults(name, values, lambda i: f"{field}/{i}")


def check_written(columns: Mapping[str, Sequence[object]]) -> None:
    """Raises InputError unless each row of every column holds a legal value; None is left open."""
    _refuse(
        fault
        for name, values in columns.items()
        for fault in _faults(name, values, lambda i, name=name: f"/{i}/{name}")
    )


def _faults(name: str, values: Sequence[object], place: Callable[[int], str]) -> list[Violation]:
    """The first faults of a column; looks for their places only where one of its values is one."""
    allowed = SPLITS.get(name) or ALLOWED[name]
    if all(allowed.is_legal(value) for value in _distinct(values)):
        return []
    wrong = (i for i, value in enumerate(values) if not allowed.is_legal(value))
    return [
        Violation(field=place(i), value=values[i], rule=allowed.rule, fix=allowed.fix)
        for i in islice(wrong, MOST_FAULTS)
    ]


def _distinct(values: Sequence[object]) -> Iterable[object]:
    """Each value once, told apart by its type too: 1, 1.0 and True are equal."""
    try:
        return [value for _, value in set(zip(map(type, values), values, strict=True))]
    except TypeError:
        return values


def check_numbers(columns: Mapping[str, NDArray[Any]]) -> None:
    """Raises InputError unless the columns are equally long and hold legal numbers."""
    faults: list[Violation] = []
    length = len(next(iter(columns.values())))
    for name, column in columns.items():
        if column.dtype != np.int64 or column.shape != (length,):
            found = f"{column.dtype} {column.shape}"
            rule, fix = f"must be int64 ({length},)", "take the rows of a UniformGrid"
            faults.append(Violation(field=f"/{name}", value=found, rule=rule, fix=fix))
        else:
            faults += _number_faults(name, column)
    _refuse(faults)


def _number_faults(name: str, column: NDArray[np.integer[Any]]) -> Iterator[Violation]:
    """Looks for the places only where the extremes of the column are out of range."""
    allowed = ALLOWED[name]
    least, most = column.min(initial=allowed.least), column.max(initial=allowed.least)
    if least >= allowed.least and most <= allowed.most:
        return
    rule = f"must be a whole number from {allowed.least} to {allowed.most:,}"
    for i in np.flatnonzero((column < allowed.least) | (column > allowed.most))[:MOST_FAULTS]:
        yield Violation(
            field=f"/{i}/{name}", value=int(column[i]), rule=rule, fix=_number_fix(name, allowed)
        )


def _number_fix(name: str, allowed: Allowed) -> str:
    names = {"recompute": RECOMPUTE_MODES, "schedule": SCHEDULES}.get(name)
    if names is None:
        return allowed.fix
    return f"use {', '.join(f'{i} for {one}' for i, one in enumerate(names))}"


def check_count(count: object) -> None:
    """Raises InputError unless this is how many of something there may be."""
    if not _whole(0, sys.maxsize)(count):
        rule, fix = "must be a whole number of at least 0", "write 1 or more"
        raise InputError.of(field="count", value=count, rule=rule, fix=fix)


def check_job(job: Job) -> None:
    """Raises InputError for a job that asks for a schedule that no row has."""
    if job.schedule is not None and job.schedule not in SCHEDULES:
        fix = f"{ALLOWED['schedule'].fix} or None; estimate and plan run the others"
        rule = ALLOWED["schedule"].rule
        raise InputError.of(field="/job/schedule", value=job.schedule, rule=rule, fix=fix)


def _refuse(faults: Iterable[Violation]) -> None:
    found = tuple(faults)
    if found:
        raise InputError(found)
