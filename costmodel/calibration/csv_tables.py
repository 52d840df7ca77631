"""Tables of micro-benchmarks as CSV: products, attention cores, memory streams, collectives.

What a table holds is told by its columns, whose names are read without case, blanks and signs
(``Time (us)`` is ``time_us``).
"""

import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from costmodel.errors import Violation

PRECISIONS = {
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp16": "fp16",
    "float16": "fp16",
    "f16": "fp16",
    "half": "fp16",
    "fp32": "fp32",
    "float32": "fp32",
    "f32": "fp32",
    "float": "fp32",
    "tf32": "tf32",
    "fp8": "fp8",
    "float8": "fp8",
    "float8_e4m3fn": "fp8",
    "fp8_e4m3": "fp8",
    "e4m3": "fp8",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
    "int8": "int8",
}

SECONDS = {
    f"{name}{unit}": factor
    for name in ("", "time_", "latency_", "duration_", "avg_time_", "mean_time_")
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
} | {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6}

FLOP_RATES = {
    f"{name}{unit}": factor
    for name in ("", "throughput_", "achieved_")
    for words, factor in (
        (("tflops", "tflop_s", "tflops_s", "tflops_per_s", "tflop_per_s"), 1e12),
        (("gflops", "gflop_s", "gflops_s", "gflops_per_s", "gflop_per_s"), 1e9),
    )
    for unit in words
}

BYTE_RATES = {
    f"{name}{unit}": factor
    for name in ("", "bandwidth_")
    for words, factor in ((("gb_s", "gb_per_s"), 1e9), (("tb_s", "tb_per_s"), 1e12))
    for unit in words
}

NAMES = {
    "m": ("m", "rows"),
    "n": ("n", "columns", "cols"),
    "k": ("k", "depth", "inner"),
    "batch": ("batch", "b", "batch_size", "count"),
    "precision": ("dtype", "precision", "type", "datatype", "data_type"),
    "sequence": ("sequence", "seq", "seq_len", "seqlen", "sequence_length", "s"),
    "heads": ("heads", "num_heads", "n_heads", "h"),
    "head_dim": ("head_dim", "headdim", "d", "head_size"),
    "causal": ("causal", "is_causal"),
    "bytes": ("bytes", "size_bytes", "size", "moved_bytes", "payload_bytes", "size_b"),
    "collective": ("collective", "op"),
    "ranks": ("ranks", "n_ranks", "num_ranks", "world_size", "nranks"),
    "nodes": ("nodes", "num_nodes", "n_nodes"),
}
"""Field -> names of the column that holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A kind of table. telling: fields by which it is recognised; rates: columns that may stand
    for a time, and the factor of their unit."""

    kind: str
    telling: tuple[str, ...]
    needed: tuple[str, ...]
    optional: Mapping[str, float]
    rates: Mapping[str, float]


SHAPES = (
    Shape(
        kind="GEMM sweep",
        telling=("m", "n", "k"),
        needed=("m", "n", "k", "precision"),
        optional={"batch": 1.0},
        rates=FLOP_RATES,
    ),
    Shape(
        kind="attention sweep",
        telling=("sequence", "heads", "head_dim"),
        needed=("sequence", "heads", "head_dim", "precision"),
        optional={"batch": 1.0, "causal": 1.0},
        rates=FLOP_RATES,
    ),
    Shape(
        kind="collective sweep",
        telling=("collective", "ranks", "bytes"),
        needed=("collective", "ranks", "bytes"),
        optional={"nodes": 1.0},
        rates={},
    ),
    Shape(
        kind="memory sweep",
        telling=("bytes",),
        needed=("bytes",),
        optional={},
        rates=BYTE_RATES,
    ),
)

TEXTS: Mapping[str, Callable[[str], str | None]] = {
    "precision": lambda word: PRECISIONS.get(word.strip().lower().removeprefix("torch.")),
    "collective": lambda word: word.strip().lower() or None,
}
MOST = 1e15
"""Of rows, columns, ranks and bytes."""
TIMES_S = (1e-9, 1e6)
RATES = (1.0, 1e21)
"""Of a row: no machine is outside of them."""
VALUES = (
    "sizes are whole numbers from 1, causal is true or false, times last a nanosecond or more, "
    "and a precision is one such as bf16"
)
TRUTHS = {"true": 1.0, "yes": 1.0, "1": 1.0, "false": 0.0, "no": 0.0, "0": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvRow:
    """One row: numbers and texts by field. seconds: the time, None where a rate stands for it."""

    where: str
    numbers: Mapping[str, float]
    texts: Mapping[str, str]
    seconds: float | None
    rate_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvTable:
    """A table that was recognised."""

    kind: str
    rows: tuple[CsvRow, ...]


def read_csv_table(text: str, path: str) -> tuple[CsvTable | None, list[Violation]]:
    """The table of a file, and what is wrong with it."""
    lines = [(i, line) for i, line in enumerate(text.splitlines(), start=1) if _holds(line)]
    if not lines:
        return None, [_fault(path, "no row", "must be a table as CSV", "write a header and rows")]
    separator = "\t" if "\t" in lines[0][1] else ";" if ";" in lines[0][1] else ","
    try:
        cells = [*csv.reader((line for _, line in lines), delimiter=separator)]
    except csv.Error as error:
        return None, [_fault(path, str(error), "must be a table as CSV", "correct or remove it")]
    header = [normal(cell) for cell in cells[0]]
    shape = shape_of(header)
    if shape is None:
        return None, [_unknown(path, cells[0])]
    faults = [*_header_faults(header, shape, f"{path}:{lines[0][0]}")]
    if faults:
        return None, faults
    rows: list[CsvRow] = []
    for (number, _), words in zip(lines[1:], cells[1:], strict=False):
        row, wrong = _row(header, words, shape, f"{path}:{number}")
        rows += [row] if row else []
        faults += wrong
    if not rows and not faults:
        rule = f"must hold the rows of a {shape.kind}"
        faults.append(_fault(path, "no row", rule, "write one row a measurement"))
    return CsvTable(kind=shape.kind, rows=tuple(rows)), faults


def normal(name: str) -> str:
    """The name of a column without case, blanks and signs."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def shape_of(header: Sequence[str]) -> Shape | None:
    """The kind of table with these columns."""
    for shape in SHAPES:
        if all(_column(header, NAMES[field]) is not None for field in shape.telling):
            return shape
    return None


def _holds(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _column(header: Sequence[str], names: Iterable[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _header_faults(header: Sequence[str], shape: Shape, where: str) -> list[Violation]:
    missing = [
        f"{field} ({' or '.join(NAMES[field])})"
        for field in shape.needed
        if _column(header, NAMES[field]) is None
    ]
    if _column(header, [*SECONDS, *shape.rates]) is None:
        rates = " or tflops" if shape.rates is FLOP_RATES else " or gb_per_s" if shape.rates else ""
        missing.append(f"a time with its unit (time_s, time_ms or time_us{rates})")
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        rule = "must name every column once"
        return [_fault(where, ", ".join(twice), rule, "remove or rename the others")]
    if not missing:
        return []
    rule = f"must have every column of a {shape.kind}"
    return [_fault(where, ", ".join(header), rule, f"add {', '.join(missing)}")]


def _row(
    header: Sequence[str], words: Sequence[str], shape: Shape, where: str
) -> tuple[CsvRow | None, list[Violation]]:
    rule = f"must be a row of a {shape.kind}"
    if len(words) != len(header):
        fix = f"give {len(header)} values, as the header names"
        return None, [_fault(where, ", ".join(words), rule, fix)]
    numbers, texts, bad = _fields(header, words, shape)
    time, rate = (_first(header, words, of) for of in (SECONDS, shape.rates))
    for name, found, (low, high) in (("the time", time, TIMES_S), ("the rate", rate, RATES)):
        if found is not None and not low <= found <= high:
            bad.append(name)
    if time is None and rate is None:
        bad.append("the time")
    if bad:
        fix = f"correct {', '.join(bad)}: {VALUES}"
        return None, [_fault(where, ", ".join(words), rule, fix)]
    return CsvRow(where=where, numbers=numbers, texts=texts, seconds=time, rate_per_s=rate), []


def _fields(
    header: Sequence[str], words: Sequence[str], shape: Shape
) -> tuple[dict[str, float], dict[str, str], list[str]]:
    """Numbers, texts and the names of the fields that hold neither."""
    numbers, texts, bad = dict(shape.optional), dict[str, str](), list[str]()
    for field in (*shape.needed, *shape.optional):
        index = _column(header, NAMES[field])
        if index is None:
            continue
        if field in TEXTS:
            text = TEXTS[field](words[index])
            texts |= {field: text} if text else {}
            bad += [] if text else [field]
            continue
        number = TRUTHS.get(words[index].strip().lower()) if field == "causal" else None
        number = _number(words[index]) if number is None else number
        known = number in (0.0, 1.0) if field == "causal" else number is not None and _size(number)
        if number is None or not known:
            bad.append(field)
        else:
            numbers[field] = number
    return numbers, texts, bad


def _first(
    header: Sequence[str], words: Sequence[str], factors: Mapping[str, float]
) -> float | None:
    """The value of the first of these columns that the row fills, in SI; NaN for no number."""
    for name, factor in factors.items():
        if name in header and words[header.index(name)].strip():
            number = _number(words[header.index(name)])
            return float("nan") if number is None else number * factor
    return None


def _number(word: str) -> float | None:
    try:
        value = float(word)
    except ValueError:
        return None
    return value if isfinite(value) else None


def _size(number: float) -> bool:
    return 1.0 <= number <= MOST and number.is_integer()


def _unknown(path: str, header: Sequence[str]) -> Violation:
    kinds = "; ".join(f"{shape.kind}: {', '.join(shape.telling)}, a time" for shape in SHAPES)
    rule = "must have the columns of a table that is known"
    return _fault(path, ", ".join(header), rule, f"name the columns ({kinds})")


def _fault(field: str, value: object, rule: str, fix: str) -> Violation:
    return Violation(field=field, value=value, rule=rule, fix=fix)
