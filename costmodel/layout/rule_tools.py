"""What the rules on layouts share: where a field is, and which legal values lie nearest."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd, isqrt
from typing import TypeAlias

from costmodel.errors import Violation
from costmodel.layout.instances import stage_blocks
from costmodel.layout.values import Layout, Stage, StageOption
from costmodel.model.graph import Block, ModelGraph
from costmodel.problem import Problem

Rule: TypeAlias = Callable[[Problem, Layout], Iterable[Violation]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One stage and where it stands in the layout."""

    pipeline: int
    index: int
    stage: Stage

    @property
    def option(self) -> StageOption:
        """How the stage runs."""
        return self.stage.option

    @property
    def path(self) -> str:
        """JSON pointer of the stage."""
        return f"/pipelines/{self.pipeline}/stages/{self.index}"

    def broken(self, name: str, rule: str, fix: str, value: object = None) -> Violation:
        """A violation of the field ``name`` of the stage; its value is looked up if not given."""
        if value is None:
            value = getattr(self.option, name)
        return Violation(field=f"{self.path}/{name}", value=value, rule=rule, fix=fix)


def places(layout: Layout) -> Iterator[Place]:
    """All stages, in the order of the document."""
    for d, pipeline in enumerate(layout.pipelines):
        for i, stage in enumerate(pipeline.stages):
            yield Place(pipeline=d, index=i, stage=stage)


def blocks_of(model: ModelGraph, stage: Stage) -> tuple[Block, ...]:
    """Block definitions that a stage runs, each once; layers that do not exist are left out."""
    known = tuple((max(a, 0), min(b, model.num_layers)) for a, b in stage.chunks)
    return tuple(model.blocks[name] for name in stage_blocks(model, replace(stage, chunks=known)))


def expert_blocks(model: ModelGraph) -> tuple[Block, ...]:
    """Blocks with routed experts."""
    return tuple(b for b in model.blocks.values() if any(op.kind == "experts" for op in b.ops))


@lru_cache(maxsize=4096)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors of a positive number, ascending."""
    small = [k for k in range(1, isqrt(number) + 1) if number % k == 0]
    return tuple(sorted({*small, *(number // k for k in small)}))


def common_divisors(numbers: Iterable[int]) -> tuple[int, ...]:
    """Numbers that divide all of these, ascending."""
    return divisors(gcd(*numbers))


def nearest(value: int, legal: Iterable[int]) -> tuple[int, ...]:
    """The legal values next to ``value``: the largest up to it and the smallest above it."""
    candidates = sorted(set(legal))
    below = [x for x in candidates if x <= value][-1:]
    above = [x for x in candidates if x > value][:1]
    return tuple(below + above)


def advice(name: str, value: int, legal: Iterable[int]) -> str:
    """``use tp 4 or 8``."""
    values = nearest(value, legal)
    return f"use {name} {alternatives(values)}" if values else f"no {name} is legal here"


def alternatives(values: Iterable[object]) -> str:
    """``4 or 8``."""
    return " or ".join(str(v) for v in values)


def merged(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """Violations of several stages that say the same become one, at the first stage."""
    groups: dict[tuple[str, str, str, str], list[Violation]] = {}
    for v in violations:
        key = (v.field.rsplit("/", 1)[-1], repr(v.value), v.rule, v.fix)
        groups.setdefault(key, []).append(v)
    return tuple(_with_count(group) for group in groups.values())


def _with_count(group: list[Violation]) -> Violation:
    others = len(group) - 1
    if others == 0:
        return group[0]
    stages = "stage" if others == 1 else "stages"
    return replace(group[0], rule=f"{group[0].rule} (so too in {others} more {stages})")
