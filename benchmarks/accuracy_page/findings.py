"""What the page is made of, as JSON values: rows, constants, folds, runs as shipped."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from costmodel.calibration import memory_fit
from costmodel.calibration.accuracy import Document, Row, accuracy_document, row_of
from costmodel.calibration.case import Case, UnscorableError
from costmodel.calibration.fit import Fitted, Near, Pooled, Spreads, own_constants
from costmodel.calibration.memory_seen import shortfall
from costmodel.calibration.parameters import PARAMETERS
from costmodel.calibration.prepare import Prepared, prepare
from costmodel.calibration.protocols import Held
from costmodel.calibration.read import read_cases
from costmodel.calibration.score import scored
from costmodel.errors import InputError

SHORT = 0.05
"""Share of a chip's memory that a run may lack by the prediction before it is counted."""


def document_of(rows: Sequence[Row]) -> Document:
    """The document of rows, with the intervals of the tuned ones apart."""
    document = accuracy_document(rows, [])
    document["intervals_tuned"] = _intervals([row for row in rows if row.tuned])
    for stack, own in document["by_stack"].items():
        own["intervals_tuned"] = _intervals([r for r in rows if r.tuned and r.stack == stack])
    return document


def _intervals(rows: Sequence[Row]) -> Document:
    timed = [row for row in rows if "time" in row.errors]
    if not timed:
        return {"n": 0}
    return {
        "n": len(timed),
        "coverage": float(np.mean([row.covered for row in timed])),
        "half_width": float(np.median([row.relative_width for row in timed])),
    }


def predictions(rows: Iterable[Row]) -> dict[str, list[float]]:
    """By row: predicted seconds and the half-width of the interval."""
    return {row.id: [row.predicted_s, row.half_width] for row in rows}


def constants(pooled: Pooled, near: Mapping[str, Near], between: Spreads) -> list[Document]:
    """The fitted constants: pooled, of each stack, and their spread between the stacks."""
    fitted, apart = pooled.fitted, between.all
    own = own_constants(pooled, near, between)
    found: list[Document] = [
        {
            "name": parameter.name,
            "prior": parameter.prior,
            "spread": parameter.spread,
            "value": parameter.value(float(fitted.x[i])),
            "sd": float(fitted.deviation[i]),
            "stacks": {},
            "between": float(apart[i]),
        }
        for i, parameter in enumerate(PARAMETERS)
    ]
    by_name = {one["name"]: one for one in found}
    for stack, one in own.items():
        for parameter, x, sd in zip(one.parameters, one.x, one.deviation, strict=True):
            entry = {"value": parameter.value(float(x)), "sd": float(sd)}
            by_name[parameter.name]["stacks"][stack] = entry
    return found


def folds(held: Iterable[Held]) -> list[Document]:
    """Constants of every prediction, and the rows that were predicted with them."""
    rows: dict[tuple[str, int], list[str]] = defaultdict(list)
    used: dict[tuple[str, int], Fitted] = {}
    for one in held:
        key = one.stack, -1 if one.fold is None else one.fold
        rows[key].append(one.prepared.case.id)
        used[key] = one.fitted
    return [{"stack": key[0], "rows": rows[key], **_point(used[key])} for key in sorted(rows)]


def _point(fitted: Fitted) -> Document:
    return {
        "parameters": [parameter.name for parameter in fitted.parameters],
        "x": [float(x) for x in fitted.x],
    }


def memory(stacks: Mapping[str, Sequence[memory_fit.Peak]]) -> Document:
    """Errors of the peaks by both protocols, and what each stack's figure counts."""
    protocols = {
        "unknown stack": memory_fit.unknown_stack(stacks),
        "known stack": memory_fit.known_stack(stacks),
    }
    found: Document = {
        protocol: {stack: list(errors) for stack, errors in by_stack.items()}
        for protocol, by_stack in protocols.items()
    }
    found["kinds"] = {stack: rows[0].prepared.how.memory for stack, rows in stacks.items()}
    found["constants"] = {stack: asdict(own) for stack, own in memory_fit.shipped(stacks).items()}
    return found


def shipped(paths: Sequence[Path]) -> Document:
    """Every row under the profiles on disk; after a fit, call it in a process of its own."""
    cases = read_cases(paths)
    results = [_shipped(case) for case in cases if case.quality in "AB"]
    rows = [result[0] for result in results if not isinstance(result, str)]
    skipped = Counter(result for result in results if isinstance(result, str))
    document = document_of(rows)
    del document["skipped"]
    return {
        "document": {**document, "rows": len(results)},
        "predictions": predictions(row for row in rows if "time" in row.errors),
        "facts": [result[1] for result in results if not isinstance(result, str)],
        "skipped": dict(skipped.most_common()),
        "quality_c": len(cases) - len(results),
    }


def _shipped(case: Case) -> tuple[Row, Document] | str:
    """A row and what the page says of it, or why there is none."""
    try:
        prepared = prepare(case)
        row = row_of(scored(case, prepared))
    except UnscorableError as reason:
        return str(reason)
    except InputError as error:
        return str(error.violations[0])
    return row, _facts(prepared, row)


def _facts(prepared: Prepared, row: Row) -> Document:
    """What the page says of a row."""
    case = prepared.case
    lacks = shortfall(prepared, prepared.evaluations(prepared.problem.efficiency))
    return {
        "id": row.id,
        "source": case.source,
        "stack": row.stack,
        "model": case.model.word("name"),
        "chip": " with ".join(dict.fromkeys(p.chip.name for p in prepared.problem.cluster.pools)),
        "chips": case.hardware.size("n_chips"),
        "architecture": prepared.problem.cluster.pools[0].chip.architecture,
        "layout": layout_text(case),
        "precision": case.parallel.word("precision"),
        "method": case.parallel.word("method"),
        "experts": case.model.size("experts") or 0,
        "tuned": row.tuned,
        "mfu": prepared.mfu,
        "measured_s": row.measured_s,
        "errors": dict(row.errors),
        "short": lacks if lacks > SHORT else 0.0,
        "mixed": len(prepared.problem.cluster.pools) > 1 or not case.stack,
        "pipelined": (case.parallel.size("pp") or 1) > 1,
        "interleaved": (case.parallel.size("vp") or 1) > 1,
        "fine_tunes": "finetun" in case.note.lower().replace("-", ""),
        "assumed": list(row.assumptions),
        "url": next((word for word in case.url.split() if word.startswith("https://")), ""),
    }


DEGREES = ("tp", "pp", "vp", "cp", "ep", "etp", "dp", "mbs", "gbs")


def layout_text(case: Case) -> str:
    """The stated degrees above one, in a fixed order."""
    parts = [(key, case.parallel.size(key)) for key in DEGREES]
    text = [f"{key} {value}" for key, value in parts if value and value > 1]
    if case.parallel.flag("fsdp") or case.parallel.size("zero") == 3:
        text.append("fully sharded")
    return ", ".join(text)
