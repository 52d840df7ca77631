"""MindSpeed 26.1: Megatron-Core 0.12.1 on Ascend."""

from collections.abc import Iterator

from costmodel.errors import Violation
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from planner.targets.megatron_rules import MEGATRON_RULES
from planner.targets.stage_rules import vendors
from planner.targets.target import Rule, Target


def _uneven_without_chunks(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del problem
    held = {len(range(a, b)) for p in layout.pipelines for s in p.stages for a, b in s.chunks}
    if layout.schedule.virtual_stages > 1 and len(held) > 1:
        yield Violation(
            field="/schedule/virtual_stages",
            value=layout.schedule.virtual_stages,
            rule="must be 1 where chunks hold unlike numbers of layers",
            fix="give every chunk the same number of layers, or use the schedule 1f1b",
        )


TARGET = Target(
    name="mindspeed",
    version="26.1",
    title="MindSpeed 26.1 on Ascend",
    source="gitee.com/ascend/MindSpeed-LLM c77308a; MindSpeed 26.1.0_core_r0.12.1",
    maintained=True,
    rules=(
        *MEGATRON_RULES,
        vendors("huawei"),
        Rule(
            id="uneven-without-chunks",
            sentence="A list of layers by stage (--num-layer-list) excludes several chunks.",
            check=_uneven_without_chunks,
        ),
    ),
)
