"""A plan and its parts: frozen values. The JSON form is in ``planner.document``."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from costmodel.evaluation import Evaluation
from costmodel.layout.values import Layout
from costmodel.problem import Problem

Document = dict[str, Any]
NodeTable = tuple[tuple[tuple[tuple[int, ...], ...], ...], ...]
"""[pipeline][stage][copy] -> node indices in the stage's pool."""


def _no_reasons() -> Mapping[str, int]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Proven lower bound on the step time over the declared space; gap = step time / bound - 1."""

    step_time_s: float
    gap: float
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What a simpler planner would do; no time when it does not fit."""

    name: str
    step_time_s: float | None
    speedup: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """Step time under another target; relative = that time / this plan's - 1."""

    target: str
    step_time_s: float
    relative: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What the search did: seconds, layouts scored exactly, options pruned by named rule."""

    elapsed_s: float
    first_within_1pct_s: float
    evaluated: int
    pruned: Mapping[str, int] = field(default_factory=_no_reasons)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A process group: the stages it joins, its ranks and what it runs over."""

    kind: str
    stages: tuple[tuple[int, int], ...]
    size: int
    link: str
    transport: str
    nics: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """Why nothing fits: the binding constraint, the nearest miss and the changes that help.

    missing_bytes: per chip, of the layout that misses least.
    """

    constraint: str
    missing_bytes: float
    pool: str
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A layout placed on a cluster, with prediction, bound and comparison.

    An infeasible plan has no layout; ``shortfall`` says why. space: version and document of the
    declared space. nodes: where each stage copy runs.
    """

    problem: Problem
    target: str
    status: str
    reproducible: bool
    space: Mapping[str, object]
    versions: Mapping[str, str]
    layout: Layout | None
    evaluation: Evaluation | None
    nodes: NodeTable
    groups: tuple[Group, ...]
    bound: Bound | None
    baselines: tuple[Baseline, ...]
    alternatives: tuple[Alternative, ...]
    effort: Effort
    shortfall: Shortfall | None = None
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    @property
    def step_time_s(self) -> float:
        """Predicted step time; infinite when nothing fits."""
        return self.evaluation.step_time_s if self.evaluation else float("inf")

    def document(self) -> Document:
        """The plan as a JSON document (schema ``haplan.plan/v1``)."""
        from planner.document import plan_document

        return plan_document(self)

    @property
    def id(self) -> str:
        """Hash of layout, placement, prediction and versions."""
        return str(self.document()["id"])


def content_id(document: Document) -> str:
    """``sha256:`` and the hash of what a plan says, not of how it was found.

    Numbers are written in their shortest form that reads back equal, so equal plans hash equal.
    """
    kept = (
        "target", "model", "cluster", "job", "versions", "schedule", "pipelines", "groups",
        "idle", "prediction", "shortfall",
    )  # fmt: skip
    content = {name: document[name] for name in kept if name in document}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
