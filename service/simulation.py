"""What both faces offer of simulated plans: a table of the stages, and the trace."""

import gzip
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import planner
from costmodel.errors import InputError
from planner.plan_reading import INFEASIBLE
from planner.simulation import Simulation, simulate
from planner.trace.document import trace_text
from service.collector import Collector
from service.documents import read_plan_file
from service.outcomes import InfeasibleError

Document = dict[str, Any]

GZIP = ".gz"


def simulate_plan(
    path: Path, *, pipeline: int | None, trace: Path | None, others: Sequence[Path] = ()
) -> Document:
    """The table of a stored plan's pipeline; its trace goes to ``trace``.

    Raises InputError for a trace in the place of the plan, or of other files that are written.
    """
    _check_place(trace, (path, *others))
    document = read_plan_file(path)
    faults = Collector()
    with faults.reading(f"{path} "):
        plan = planner.read_plan(document)
    faults.check()
    try:
        found = _simulated(plan, pipeline)
    except InputError as error:
        named = (
            replace(v, field=v.field.replace("/pipeline", "--pipeline")) for v in error.violations
        )
        raise InputError(named) from error
    answer = found.document()
    if trace is None:
        return answer
    size = _save(trace_text(found).encode(), trace)
    return answer | {"trace": {"path": str(trace), "bytes": size}}


def trace_of(document: Mapping[str, Any], pipeline: int | None) -> str:
    """The trace of a plan's pipeline, as JSON text."""
    return trace_text(_simulated(planner.read_plan(document), pipeline))


def _simulated(plan: planner.Plan, pipeline: int | None) -> Simulation:
    """A plan's pipeline, simulated. InfeasibleError where there is no layout."""
    if plan.layout is None and plan.status == INFEASIBLE:
        raise InfeasibleError("nothing to simulate: the plan is infeasible")
    return simulate(plan, pipeline)


def _check_place(trace: Path | None, taken: Iterable[Path]) -> None:
    if trace is None:
        return
    if trace.resolve() in {path.resolve() for path in taken}:
        raise InputError.of(
            field="--trace",
            value=str(trace),
            rule="must be another file than the plan and the document",
            fix="choose another path",
        )


def _save(content: bytes, path: Path) -> int:
    """Writes whole or not at all, compressed where the name ends in ``.gz``; bytes written."""
    data = gzip.compress(content, mtime=0) if path.suffix.lower() == GZIP else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "wb", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            file.write(data)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as error:
        raise InputError.of(
            field="--trace",
            value=str(path),
            rule="must be a file that can be written",
            fix=f"choose another path ({error.strerror})",
        ) from error
    return len(data)
