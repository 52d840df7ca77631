"""The text that nccl-tests and rccl-tests print (``all_reduce_perf`` and its siblings).

A header names the columns, out of place first and then in place; a row has a value for each. The
devices above it say ranks and hosts. Bus bandwidth: ``busbw = size / time x f (n - 1) / n`` with f
2 for an all-reduce and 1 otherwise (nccl-tests, ``doc/PERFORMANCE.md``).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from costmodel.calibration.measurements import CollectivePoint
from costmodel.errors import Violation
from costmodel.model.placement import Collective
from costmodel.network.collectives import wire_share

_COLLECTIVES = {
    "all_reduce": Collective.ALL_REDUCE,
    "allreduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "allgather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "reducescatter": Collective.REDUCE_SCATTER,
    "alltoall": Collective.ALL_TO_ALL,
    "all_to_all": Collective.ALL_TO_ALL,
}
_OTHERS = ("sendrecv", "broadcast", "gather", "scatter", "hypercube", "reduce")
_PROGRAM = re.compile(r"([a-z_]+?)_perf")
_RANK = re.compile(r"^#\s+Rank\s+\d+.*?\bon\s+(\S+)\s+device")
_SIZE = re.compile(r"\d+$")
_TIMES = ("time", "cputime")
_AGREEMENT = 0.03
"""How far bus bandwidth over algorithm bandwidth may be from the collective's own factor."""
_LEAST_GB_PER_S = 1.0
"""Below it the two printed digits of a bandwidth say nothing."""

RULE = "must be the output of one nccl-tests program"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    where: str
    size: float
    seconds: float
    algbw: float
    busbw: float


def is_nccl_text(text: str) -> bool:
    """Whether a text looks like it."""
    return "algbw" in text and "busbw" in text


def read_nccl_text(text: str, path: str) -> tuple[list[CollectivePoint], list[Violation]]:
    """The points of one output, in place and out of place, and what is wrong with it."""
    lines = text.splitlines()
    rows, faults = _rows(lines, path)
    collective, wrong = collective_of(lines, path)
    hosts = [found[1] for line in lines if (found := _RANK.match(line))]
    ranks = len(hosts) or _ranks_by_factor(rows, collective)
    nodes = len(set(hosts)) or 1
    if not rows and not faults:
        faults.append(_fault(path, "no row", "run it to its end and keep its whole output"))
    if collective is None:
        return [], [*faults, *wrong]
    if rows and ranks < 2:
        fix = "keep the lines `# Rank ...` of the output, and measure two chips or more"
        return [], [*faults, _fault(path, f"{ranks} rank", fix)]
    faults += _disagreements(rows, collective, ranks, path)
    points = [
        CollectivePoint(
            where=row.where,
            collective=collective,
            ranks=ranks,
            nodes=nodes,
            payload_bytes=row.size,
            seconds=row.seconds,
        )
        for row in rows
    ]
    return points, faults


def collective_of(lines: Sequence[str], path: str) -> tuple[Collective | None, list[Violation]]:
    """Which collective: as the output says, else as the file is called."""
    named = [found for line in lines for found in _PROGRAM.findall(line)]
    known = {_COLLECTIVES[name] for name in named if name in _COLLECTIVES}
    if len(known) > 1:
        fix = "give the output of each in a file of its own"
        return None, [_fault(path, sorted(c.value for c in known), fix)]
    if known:
        return known.pop(), []
    name = path.rsplit("/", 1)[-1].lower().replace("-", "_")
    for part, collective in _COLLECTIVES.items():
        if part in name and not named:
            return collective, []
    other = next((word for word in _OTHERS if word in [*named, *name.split("_")]), "")
    fix = "name the file after it, as in all_gather_perf.txt; fitted are all_reduce, all_gather, "
    return None, [_fault(path, other or "no collective", f"{fix}reduce_scatter and alltoall")]


def is_header(words: Sequence[str]) -> bool:
    """Whether these words of a line name the columns."""
    return {"size", "algbw", "busbw"} <= {*words} and any(word in words for word in _TIMES)


def _rows(lines: Sequence[str], path: str) -> tuple[list[_Row], list[Violation]]:
    rows: list[_Row] = []
    faults: list[Violation] = []
    columns: list[str] = []
    for number, line in enumerate(lines, start=1):
        words = line.replace("|", " ").split()
        if is_header(words):
            columns = [word for word in words if word != "#"]
        elif columns and words and _SIZE.match(words[0]):
            where = f"{path}:{number}"
            if len(words) != len(columns):
                fix = f"{len(columns)} columns are named above; restore the line or remove it"
                faults.append(_fault(where, line.strip(), fix))
                continue
            found, wrong = _row(columns, words, where)
            rows += found
            faults += wrong
    return rows, faults


def _row(
    columns: Sequence[str], words: Sequence[str], where: str
) -> tuple[list[_Row], list[Violation]]:
    """One row for each group of columns that begins with a time."""
    faults: list[Violation] = []
    rows: list[_Row] = []
    for group in _groups(columns, words):
        time, algbw, busbw = (_number(group.get(key)) for key in ("time", "algbw", "busbw"))
        if group.get("time") == "N/A":
            continue
        if time is None or algbw is None or busbw is None or time <= 0.0:
            fix = "times are microseconds above 0 and bandwidths GB/s; restore or remove the line"
            faults.append(_fault(where, " ".join(words), fix))
            continue
        if (_number(group.get("#wrong")) or 0.0) > 0.0:
            fix = "the program found wrong results: repair the fabric before measuring it"
            faults.append(_fault(where, " ".join(words), fix))
            continue
        size = float(words[0])
        if size > 0.0:
            rows.append(_Row(where=where, size=size, seconds=time * 1e-6, algbw=algbw, busbw=busbw))
    return rows, faults


def _groups(columns: Sequence[str], words: Sequence[str]) -> Iterator[dict[str, str]]:
    starts = [index for index, name in enumerate(columns) if name in _TIMES]
    for start, stop in zip(starts, [*starts[1:], len(columns)], strict=True):
        names = ["time", *columns[start + 1 : stop]]
        yield dict(zip(names, words[start:stop], strict=True))


def _number(word: str | None) -> float | None:
    try:
        value = float(word or "")
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _ranks_by_factor(rows: Sequence[_Row], collective: Collective | None) -> int:
    """From ``busbw / algbw`` of the largest message, where no device is listed; 0 if unknown."""
    telling = [row for row in rows if row.algbw >= _LEAST_GB_PER_S]
    if collective is None or not telling:
        return 0
    last = max(telling, key=lambda row: row.algbw)
    left = 1.0 - last.busbw / last.algbw / (2.0 if collective is Collective.ALL_REDUCE else 1.0)
    return round(1.0 / left) if left > 1e-3 else 0


def _disagreements(
    rows: Sequence[_Row], collective: Collective, ranks: int, path: str
) -> list[Violation]:
    """The printed bandwidths against the factor of this collective and these ranks."""
    share = float(wire_share(collective, np.asarray(ranks, dtype=np.float64)))
    wrong = [
        row
        for row in rows
        if row.algbw >= _LEAST_GB_PER_S and abs(row.busbw / row.algbw / share - 1.0) > _AGREEMENT
    ]
    if not wrong:
        return []
    seen = f"{wrong[0].busbw / wrong[0].algbw:.2f} at {wrong[0].where}"
    return [
        Violation(
            field=path,
            value=seen,
            rule=f"bus over algorithm bandwidth of {collective.value} on {ranks} ranks "
            f"must be {share:.3g}",
            fix="check which collective and how many ranks the file is of",
        )
    ]


def _fault(field: str, value: object, fix: str) -> Violation:
    return Violation(field=field, value=value, rule=RULE, fix=fix)
