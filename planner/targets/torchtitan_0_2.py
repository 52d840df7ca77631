"""torchtitan 0.2: one device mesh, FSDP for data parallelism, any list of modules a stage."""

from costmodel.layout.values import StageOption
from costmodel.problem import Problem
from planner.targets.host_rules import HOSTS_IN_RANK_ORDER
from planner.targets.layout_rules import (
    DECODER_ONLY,
    NO_MTP,
    ONE_VENDOR,
    SAME_MICROBATCHES,
    SAME_SPLIT,
    schedules,
)
from planner.targets.megatron_rules import ONE_MESH
from planner.targets.stage_rules import (
    SEQUENCE_PARALLEL_WITH_TP,
    offload_in,
    recompute_in,
    stage_rule,
    zero_in,
)
from planner.targets.target import Target


def _experts_hold_tp_and_cp(problem: Problem, option: StageOption) -> bool:
    del problem
    if option.ep == 1:
        return True
    inner = option.cp if option.etp == option.tp else option.cp * option.tp
    return option.ep % inner == 0


def _sequence_splits(problem: Problem, option: StageOption) -> bool:
    parts = option.tp * 2 * option.cp if option.cp > 1 else option.tp
    return problem.job.sequence_length % parts == 0


TARGET = Target(
    name="torchtitan",
    version="0.2",
    title="torchtitan 0.2",
    source="github.com/pytorch/torchtitan v0.2.2: distributed/parallel_dims.py",
    maintained=True,
    rules=(
        DECODER_ONLY,
        NO_MTP,
        ONE_VENDOR,
        *ONE_MESH,
        SAME_SPLIT,
        SAME_MICROBATCHES,
        schedules("1f1b", "gpipe", "interleaved"),
        zero_in(0, 2, 3),
        recompute_in("none", "selective", "full"),
        offload_in("none"),
        SEQUENCE_PARALLEL_WITH_TP,
        stage_rule(
            "expert-tensor-parallel",
            "Expert tensor parallelism is 1 or tp.",
            "etp",
            lambda _, option: option.ep == 1 or option.etp in (1, option.tp),
            fix="write 1, or tp",
        ),
        stage_rule(
            "experts-hold-tp-and-cp",
            "An expert group is made of whole cp groups, and of whole tp groups where etp is 1.",
            "ep",
            _experts_hold_tp_and_cp,
            fix="use a multiple of cp x tp",
        ),
        stage_rule(
            "sequence-splits",
            "tp divides the sequence, and 2 x cp x tp does where cp is above 1.",
            "cp",
            _sequence_splits,
            fix="use a smaller tp or cp, or pad the sequence",
        ),
        HOSTS_IN_RANK_ORDER,
    ),
)
