"""Runs a suite of planning cases and compares it with a baseline."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field

from costmodel.errors import InputError, Violation
from costmodel.hardware.read import cluster_names
from costmodel.model.read import model_names
from costmodel.safe_document import load_document
from costmodel.wire.read import validate
from haplan_client.schema.requests import Question
from planner.regression import Comparison, Result
from service.collector import Collector, located
from service.inputs import DEFAULT_TARGET, other_faults, read_inputs
from service.sources import Sources
from service.usecases import plan_question

Document = dict[str, Any]
AnyModel = TypeVar("AnyModel", bound=BaseModel)

BASELINE_SCHEMA = "haplan.baseline/v1"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Case(Question):
    """One planning problem of a suite."""

    name: Annotated[str, Field(min_length=1)]
    target: str = DEFAULT_TARGET
    time_limit_s: Annotated[float, Field(gt=0)] = 10.0


class Suite(_Strict):
    """Planning problems that are planned again and again."""

    cases: Annotated[list[Case], Field(min_length=1)]


class BaselineCase(_Strict):
    """What a case gave when the baseline was made; null is infeasible."""

    step_time_s: float | None
    plan_id: str = ""


class Baseline(_Strict):
    """Results to compare with."""

    schema_name: str = Field(default=BASELINE_SCHEMA, alias="schema")
    cases: dict[str, BaselineCase]


def read_as(kind: type[AnyModel], path: Path) -> AnyModel:
    """A file as a document of some kind."""
    return validate(kind, load_document(path), name=str(path))


def read_suite(path: Path) -> Suite:
    """A suite from a YAML or JSON file; all its names and paths are read before any is planned."""
    try:
        suite = read_as(Suite, path)
    except InputError as error:
        raise InputError([*error.violations, *_other_faults(path, error)]) from None
    names = [case.name for case in suite.cases]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError.of(
            field=str(path), value=twice, rule="must name its cases apart", fix="rename one"
        )
    suite = Suite(cases=[resolved(case, path.parent) for case in suite.cases])
    faults = Collector()
    for index, case in enumerate(suite.cases):
        with faults.reading(f"{path}/cases/{index}"):
            read_inputs(case, Sources(), target=case.target)
    faults.check()
    return suite


def _other_faults(path: Path, error: InputError) -> list[Violation]:
    """What else is wrong in the cases of a suite that breaks rules."""
    fields = [violation.field for violation in error.violations]
    listed = load_document(path).get("cases")
    cases = cast("list[object]", listed) if isinstance(listed, list) else []
    found: list[Violation] = []
    for index, case in enumerate(cases):
        if isinstance(case, dict):
            place = f"{path}/cases/{index}"
            broken = [f.removeprefix(place) for f in fields if f.startswith(f"{place}/")]
            parts = from_folder(cast("Document", case), path.parent)
            found += [located(place, fault) for fault in other_faults(parts, broken, Sources())]
    return found


def resolved(case: Case, folder: Path) -> Case:
    """The case with its paths seen from the suite's folder, where they lead somewhere there."""
    parts = {"model": case.model, "cluster": case.cluster}
    return case.model_copy(update=from_folder(parts, folder))


def from_folder(parts: Mapping[str, Any], folder: Path) -> Document:
    """`parts` with the paths of model and cluster seen from `folder`."""
    bundled = {"model": model_names(), "cluster": cluster_names()}
    found = {
        part: folder / parts[part]
        for part, names in bundled.items()
        if isinstance(parts.get(part), str) and parts[part] not in names
    }
    return dict(parts) | {part: str(path) for part, path in found.items() if leads_somewhere(path)}


def leads_somewhere(path: Path) -> bool:
    """Whether there is such a file or folder; not where the system refuses the path."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def read_baseline(path: Path) -> dict[str, Result]:
    """Results by case name from a baseline file."""
    if not path.exists():
        raise InputError.of(
            field="--baseline",
            value=str(path),
            rule="must be a file that exists",
            fix="create it with --update",
        )
    baseline = read_as(Baseline, path)
    return {
        name: Result(step_time_s=case.step_time_s, plan_id=case.plan_id)
        for name, case in baseline.cases.items()
    }


def run_suite(suite: Suite, *, on_case: Callable[[str], None]) -> dict[str, Result]:
    """Plan every case; `on_case` hears the name of each before it is planned."""
    results: dict[str, Result] = {}
    for case in suite.cases:
        on_case(case.name)
        results[case.name] = run_case(case)
    return results


def run_case(case: Case) -> Result:
    """Plan one case."""
    plan = plan_question(
        case, target=case.target, time_limit_s=case.time_limit_s, sources=Sources()
    )
    feasible = plan["status"] != "infeasible"
    return Result(
        step_time_s=plan["prediction"]["step_time_s"] if feasible else None, plan_id=plan["id"]
    )


def baseline_text(results: Mapping[str, Result]) -> str:
    """A baseline file."""
    document = {
        "schema": BASELINE_SCHEMA,
        "cases": {name: asdict(result) for name, result in results.items()},
    }
    return json.dumps(document, indent=2) + "\n"


def report_of(comparisons: Iterable[Comparison], *, threshold: float) -> Document:
    """The verdicts as a document."""
    cases = [asdict(c) | {"passed": c.verdict.passed} for c in comparisons]
    return {
        "schema": "haplan.regression/v1",
        "threshold": threshold,
        "passed": all(case["passed"] for case in cases),
        "cases": cases,
    }
