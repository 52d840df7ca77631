"""Recognises and reads the files of ``haplan calibrate``; all that is wrong comes at once."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from costmodel.calibration.csv_tables import CsvRow, CsvTable, read_csv_table
from costmodel.calibration.measurements import (
    AttentionPoint,
    CollectivePoint,
    FileRead,
    GemmPoint,
    Measurements,
    StreamPoint,
    attention_flop,
)
from costmodel.calibration.nccl_text import is_nccl_text, read_nccl_text
from costmodel.calibration.read import MAX_FILE_BYTES, MOST_FAULTS, each_once, read_cases
from costmodel.errors import InputError, Violation
from costmodel.model.placement import Collective

SUFFIXES = (".csv", ".tsv", ".jsonl", ".txt", ".log", ".out")
"""Of the files that are read in a folder."""

KINDS = (
    "give nccl-tests output, a CSV table of products, attention, memory or collectives, or "
    "measured cases (.jsonl)"
)


def read_measurements(paths: Iterable[Path]) -> Measurements:
    """All files, each once, and of a folder those that end like one of ours.

    Raises InputError naming every file and line that is wrong.
    """
    found = Measurements()
    faults: list[Violation] = []
    files: list[Path] = []
    for path in paths:
        inside = _inside(path) if path.is_dir() else [path]
        files += inside
        if not inside:
            faults.append(_fault(path, f"a folder without {', '.join(SUFFIXES)}"))
    for file in each_once(files):
        one, wrong = _read(file)
        faults += _few(wrong, file)
        found = _joined(found, one)
    if faults:
        raise InputError(faults)
    return found


def _inside(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())


def _few(faults: list[Violation], path: Path) -> list[Violation]:
    if len(faults) <= MOST_FAULTS:
        return faults
    more = Violation(
        field=str(path),
        value=f"{len(faults) - MOST_FAULTS} more",
        rule="must be free of faults",
        fix="correct them too",
    )
    return [*faults[:MOST_FAULTS], more]


def _read(path: Path) -> tuple[Measurements, list[Violation]]:
    if path.suffix == ".jsonl":
        return _cases(path)
    try:
        text = _text(path)
    except UnicodeDecodeError as error:
        return Measurements(), [_fault(path, f"byte {error.start} is not UTF-8")]
    except OSError as error:
        return Measurements(), [_fault(path, error.strerror or "not readable")]
    if path.suffix in (".csv", ".tsv"):
        table, faults = read_csv_table(text, str(path))
        return (Measurements(), faults) if table is None else _table(table, path, faults)
    if not is_nccl_text(text):
        return Measurements(), [_fault(path, text[:40])]
    points, faults = read_nccl_text(text, str(path))
    file = FileRead(path=str(path), kind=_nccl_kind(points), points=len(points))
    return Measurements(files=(file,), collectives=tuple(points)), faults


def _text(path: Path) -> str:
    """The text of a file. Raises OSError for none, one that is no plain file and one too large."""
    if path.exists() and not path.is_file():
        raise OSError(0, "not a plain file")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise OSError(0, f"larger than {MAX_FILE_BYTES} bytes")
    return path.read_bytes().decode("utf-8-sig")


def _nccl_kind(points: list[CollectivePoint]) -> str:
    if not points:
        return "nccl-tests"
    one = points[0]
    return f"nccl-tests {one.collective.value}, {one.ranks} ranks on {one.nodes} node(s)"


def _cases(path: Path) -> tuple[Measurements, list[Violation]]:
    try:
        cases = read_cases([path])
    except InputError as error:
        return Measurements(), [*error.violations]
    file = FileRead(path=str(path), kind="measured cases", points=len(cases))
    empty = [] if cases else [_fault(path, "no case")]
    return Measurements(files=(file,), cases=cases), empty


def _table(
    table: CsvTable, path: Path, faults: list[Violation]
) -> tuple[Measurements, list[Violation]]:
    file = FileRead(path=str(path), kind=table.kind, points=len(table.rows))
    read = Measurements(files=(file,))
    if table.kind == "GEMM sweep":
        return replace(read, gemms=tuple(map(_gemm, table.rows))), faults
    if table.kind == "attention sweep":
        return replace(read, attention=tuple(map(_attention, table.rows))), faults
    if table.kind == "memory sweep":
        return replace(read, streams=tuple(map(_stream, table.rows))), faults
    collectives, wrong = _collectives(table.rows)
    return replace(read, collectives=tuple(collectives)), [*faults, *wrong]


def _gemm(row: CsvRow) -> GemmPoint:
    sizes = {name: row.numbers[name] for name in ("m", "n", "k", "batch")}
    unit = GemmPoint(where=row.where, precision=row.texts["precision"], seconds=1.0, **sizes)
    return replace(unit, seconds=row.seconds or unit.flop_per_s / (row.rate_per_s or 1.0))


def _attention(row: CsvRow) -> AttentionPoint:
    sizes = {name: row.numbers[name] for name in ("batch", "heads", "sequence", "head_dim")}
    unit = AttentionPoint(
        where=row.where,
        causal=row.numbers["causal"] != 0.0,
        precision=row.texts["precision"],
        seconds=1.0,
        **sizes,
    )
    return replace(unit, seconds=row.seconds or attention_flop(unit) / (row.rate_per_s or 1.0))


def _stream(row: CsvRow) -> StreamPoint:
    moved = row.numbers["bytes"]
    seconds = row.seconds or moved / (row.rate_per_s or 1.0)
    return StreamPoint(where=row.where, moved_bytes=moved, seconds=seconds)


def _collectives(rows: Iterable[CsvRow]) -> tuple[list[CollectivePoint], list[Violation]]:
    known = {collective.value: collective for collective in Collective}
    points: list[CollectivePoint] = []
    faults: list[Violation] = []
    for row in rows:
        name, ranks = row.texts["collective"], round(row.numbers["ranks"])
        if name not in known or ranks < 2:
            fix = f"name one of {', '.join(known)}, on two ranks or more"
            rule = "must be a row of a collective sweep"
            value = f"{name} on {ranks}"
            faults.append(Violation(field=row.where, value=value, rule=rule, fix=fix))
            continue
        points.append(
            CollectivePoint(
                where=row.where,
                collective=known[name],
                ranks=ranks,
                nodes=round(row.numbers["nodes"]),
                payload_bytes=row.numbers["bytes"],
                seconds=row.seconds or 1.0,
            )
        )
    return points, faults


def _joined(one: Measurements, other: Measurements) -> Measurements:
    return Measurements(
        files=(*one.files, *other.files),
        collectives=(*one.collectives, *other.collectives),
        gemms=(*one.gemms, *other.gemms),
        attention=(*one.attention, *other.attention),
        streams=(*one.streams, *other.streams),
        cases=(*one.cases, *other.cases),
    )


def _fault(path: Path, value: object) -> Violation:
    rule = "must be a file of measurements"
    return Violation(field=str(path), value=value, rule=rule, fix=KINDS)
