"""Estimates one given layout: the rules first, then time and memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from costmodel.assumptions import assumptions_of
from costmodel.errors import InputError, Violation
from costmodel.evaluation import Evaluation
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.layout.fitting import Change, smallest_changes
from costmodel.layout.read import is_inline, load_layout
from costmodel.layout.rules import violations, warnings
from costmodel.layout.values import Layout
from costmodel.model.graph import ModelGraph
from costmodel.problem import Problem
from costmodel.same import SameProblem
from costmodel.step import evaluate

TIGHT_SHARE = 0.92
"""Share of the usable memory from which a stage is called tight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one layout costs.

    warnings: what is legal and worth a word. assumptions: what nobody stated or measured.
    changes: for a layout that does not fit, the smallest ones after which it would; when none
    does, the one that comes nearest.
    """

    problem: Problem
    evaluation: Evaluation
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]
    changes: tuple[Change, ...]

    @property
    def fits(self) -> bool:
        """Whether every stage fits its chips' memory."""
        return self.evaluation.fits

    @property
    def missing_bytes(self) -> float:
        """Most bytes missing on one chip; 0 when the layout fits."""
        return self.evaluation.missing_bytes

    def document(self) -> dict[str, object]:
        """The estimate as plain data (schema ``haplan.estimate/v1``)."""
        from costmodel.estimate_document import estimate_document

        return estimate_document(self)


def estimate(
    model: ModelGraph,
    cluster: Cluster,
    job: Job,
    layout: Layout | str | Path | Mapping[str, object],
) -> Estimate:
    """Predicts time and memory of one layout.

    layout: a value, a document as in a plan, the path of one, or the inline form
        ``tp=8,pp=4,dp=2``.

    Raises InputError with every rule that the layout breaks.
    """
    problem = Problem(model=model, cluster=cluster, job=job)
    of = SameProblem(problem)
    if isinstance(layout, str) and is_inline(layout):
        layout = _inline_layout(of, layout)
    elif not isinstance(layout, Layout):
        layout = load_layout(problem, layout)
    elif broken := _broken(of, layout):
        raise InputError(broken)
    said = _said(of, layout)
    evaluation = evaluate(problem, layout)
    return Estimate(
        problem=problem,
        evaluation=evaluation,
        warnings=said.warnings + memory_warnings(evaluation),
        assumptions=said.assumptions,
        changes=() if evaluation.fits else _changes(of, layout),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What is to be said of a legal layout before it is evaluated."""

    warnings: tuple[str, ...]
    assumptions: tuple[str, ...]


@lru_cache(maxsize=256)
def _inline_layout(of: SameProblem, text: str) -> Layout:
    return load_layout(of.problem, text)


@lru_cache(maxsize=256)
def _broken(of: SameProblem, layout: Layout) -> tuple[Violation, ...]:
    return violations(of.problem, layout)


@lru_cache(maxsize=256)
def _said(of: SameProblem, layout: Layout) -> _Said:
    problem = of.problem
    assumptions = assumptions_of(problem, layout)
    return _Said(warnings=warnings(problem, layout), assumptions=assumptions)


@lru_cache(maxsize=256)
def _changes(of: SameProblem, layout: Layout) -> tuple[Change, ...]:
    return smallest_changes(of.problem, evaluate(of.problem, layout))


def memory_warnings(evaluation: Evaluation) -> tuple[str, ...]:
    """Stages that fit with little to spare."""
    return tuple(
        f"/pipelines/{d}/stages/{i} fills {stage.memory.peak / stage.memory.capacity:.0%} of the "
        "usable memory: fragmentation may break it"
        for d, pipeline in enumerate(evaluation.stages)
        for i, stage in enumerate(pipeline)
        if TIGHT_SHARE < stage.memory.peak / stage.memory.capacity <= 1
    )
