"""Runs a suite of planning cases and compares it with a baseline."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from costmodel.errors import InputError
from costmodel.safe_document import load_document
from costmodel.wire.read import validate
from haplan_client.schema.requests import Question
from planner.regression import Comparison, Result
from service.inputs import DEFAULT_TARGET
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
    """A suite from a YAML or JSON file."""
    suite = read_as(Suite, path)
    names = [case.name for case in suite.cases]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError.of(
            field=str(path), value=twice, rule="must name its cases apart", fix="rename one"
        )
    return suite


def read_baseline(path: Path) -> dict[str, Result]:
    """Results by case name from a baseline file."""
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
