"""What is asked of a plan beside the question: as it is written, and read for a problem."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from costmodel.layout.read import load_layout
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from planner.wishes import Wishes
from service.collector import Collector
from service.inputs import read_layout_source
from service.sources import Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """baselines: compare with all of them. layout: one to compare with, or its source."""

    baselines: bool = False
    layout: str | Mapping[str, Any] | None = None


NOTHING = Asked()


def read_wishes(asked: Asked, problem: Problem, sources: Sources) -> Wishes:
    """The wishes; raises InputError with every fault."""
    faults = Collector()
    given: Layout | None = None
    if asked.layout is not None:
        with faults.reading("/layout"):
            given = load_layout(problem, read_layout_source(asked.layout, sources))
    faults.check()
    return Wishes(every_baseline=asked.baselines, given=given)
