"""What is asked of a plan beside the question: as it is written, and read for a problem."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from costmodel.errors import InputError
from costmodel.hardware.values import Cluster
from costmodel.layout.read import load_layout
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from planner.frontier import OBJECTIVES
from planner.subclusters import holding_back, with_memory_margin, without_nodes
from planner.wishes import Wishes
from service.collector import Collector
from service.inputs import read_layout_source
from service.pins import Fixed, read_pins
from service.sources import Sources

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Wishes as they are written.

    baselines: compare with all of them. layout: one to compare with. pins: ``NAME=VALUE``.
    exclude: nodes by name or as ``pool:index``. objective: time, cost or chips; the last needs
    tokens and a deadline in hours. prove_s: seconds to go on proving once the search is over.
    """

    baselines: bool = False
    layout: str | Mapping[str, Any] | None = None
    pins: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    objective: str = "time"
    tokens: float | None = None
    deadline_hours: float | None = None
    prove_s: float = 0.0

    @property
    def deadline_s(self) -> float:
        """Seconds that the training may take; 0 when nothing was said."""
        return (self.deadline_hours or 0.0) * HOUR_S


NOTHING = Asked()


def read_wishes(asked: Asked, problem: Problem, sources: Sources) -> tuple[Problem, Wishes]:
    """The problem with the cluster that is left, and the wishes; raises InputError."""
    faults = Collector()
    fixed, given = Fixed(), None
    with faults.reading(""):
        fixed = read_pins(asked.pins, problem.cluster)
    with faults.reading(""):
        _check_objective(asked)
    cluster = _left(problem.cluster, asked, fixed, faults)
    problem = replace(problem, cluster=cluster)
    if asked.layout is not None:
        with faults.reading("/layout"):
            given = _layout(asked.layout, problem, sources)
    faults.check()
    wishes = Wishes(
        every_baseline=asked.baselines, given=given, pins=fixed.pins, prove_s=asked.prove_s
    )
    return problem, wishes


def _layout(source: str | Mapping[str, Any], problem: Problem, sources: Sources) -> Layout:
    return load_layout(problem, read_layout_source(source, sources))


def _left(cluster: Cluster, asked: Asked, fixed: Fixed, faults: Collector) -> Cluster:
    """The cluster without what is excluded or held back."""
    if asked.exclude:
        with faults.reading(""):
            cluster = without_nodes(cluster, asked.exclude)
    if fixed.reserve:
        with faults.reading(""):
            cluster = holding_back(cluster, fixed.reserve)
    if fixed.memory_margin is not None:
        with faults.reading(""):
            cluster = with_memory_margin(cluster, fixed.memory_margin)
    return cluster


def _check_objective(asked: Asked) -> None:
    if asked.objective not in OBJECTIVES:
        raise InputError.of(
            field="/objective",
            value=asked.objective,
            rule="must be a known objective",
            fix=f"use {', '.join(OBJECTIVES)}",
        )
    if asked.objective == "chips" and not (asked.tokens and asked.deadline_hours):
        raise InputError.of(
            field="/objective",
            value=asked.objective,
            rule="needs the tokens to train on and a deadline in hours",
            fix="give tokens and deadline_hours, both above 0",
        )
