"""DeepSpeed 0.18: its pipeline engine with ZeRO 0 or 1, or ZeRO without a pipeline."""

from collections.abc import Iterator

from costmodel.errors import Violation
from costmodel.layout.rule_tools import places
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from planner.targets.host_rules import HOSTS_IN_RANK_ORDER
from planner.targets.layout_rules import (
    DECODER_ONLY,
    EVEN_SPLIT,
    NO_MTP,
    ONE_VENDOR,
    SAME_MICROBATCHES,
    schedules,
)
from planner.targets.megatron_rules import ONE_MESH
from planner.targets.stage_rules import offload_in, only_one, recompute_in, stage_rule
from planner.targets.target import Rule, Target


def _zero_or_stages(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del problem
    for place in places(layout):
        if place.option.zero > 1 and len(layout.pipelines[place.pipeline].stages) > 1:
            rule = "must be at most 1 in a pipeline of several stages"
            yield place.broken("zero", rule, "write 1, or use one stage")


def _tensor_parallel_or_stages(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del problem
    for place in places(layout):
        if place.option.tp > 1 and len(layout.pipelines[place.pipeline].stages) > 1:
            rule = "must be 1 in a pipeline of several stages: AutoTP and pipelines do not combine"
            yield place.broken("tp", rule, "write 1, or use one stage")


TARGET = Target(
    name="deepspeed",
    version="0.18",
    title="DeepSpeed 0.18",
    source="github.com/deepspeedai/DeepSpeed edaa722: runtime/pipe/module.py; "
    "deepspeed.ai/tutorials/autotp-training (2026)",
    maintained=True,
    rules=(
        DECODER_ONLY,
        NO_MTP,
        ONE_VENDOR,
        *ONE_MESH,
        EVEN_SPLIT,
        SAME_MICROBATCHES,
        schedules("1f1b"),
        Rule(
            id="zero-or-stages",
            sentence="Pipelines of several stages come with ZeRO 0 or 1.",
            check=_zero_or_stages,
        ),
        Rule(
            id="tensor-parallel-or-stages",
            sentence="AutoTP does not combine with pipelines of several stages.",
            check=_tensor_parallel_or_stages,
        ),
        stage_rule(
            "tensor-parallel-zero",
            "AutoTP comes with ZeRO 0, 1 or 2.",
            "zero",
            lambda _, option: option.tp == 1 or option.zero < 3,
            rule="must be at most 2 where tp is above 1",
            fix="write 2",
        ),
        stage_rule(
            "no-sequence-parallel",
            "AutoTP has no sequence parallelism.",
            "sequence_parallel",
            lambda _, option: not option.sequence_parallel or option.tp == 1,
            rule="must be false",
            fix="write false, or use tp 1",
        ),
        only_one("cp", "sequences are not split"),
        only_one("ep", "experts are not spread over ranks"),
        only_one("etp", "experts are not split"),
        recompute_in("none", "full"),
        offload_in("none", "optimizer"),
        stage_rule(
            "optimizer-offload-zero",
            "The optimizer's state goes to the host with ZeRO 1 to 3.",
            "zero",
            lambda _, option: option.zero >= 1 or not option.optimizer_on_host,
            rule="must be at least 1 where the optimizer is offloaded",
            fix="write 1",
        ),
        HOSTS_IN_RANK_ORDER,
    ),
)
