"""What all versions of Megatron-Core ask, and the frameworks built on it.

One value of every degree for the whole job (``arguments.py``), layers cut anywhere
(``--pipeline-model-parallel-layout``), ranks numbered tp, cp, dp, pp from fast to slow. That
tp divides heads, query groups and feed-forward widths, ep the experts, and that the batch
splits into micro-batches, are rules of every layout (``costmodel.layout.rules``); those that
depend on a choice of the framework follow here.
"""

from collections.abc import Iterator

from costmodel.errors import Violation
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from planner.targets.host_rules import HOSTS_IN_RANK_ORDER
from planner.targets.layout_rules import (
    DECODER_ONLY,
    ONE_VENDOR,
    SAME_MICROBATCHES,
    SAME_SPLIT,
    same,
    schedules,
)
from planner.targets.stage_rules import (
    CONTEXT_SPLITS,
    EXPERTS_NEED_SEQUENCE_PARALLEL,
    SEQUENCE_PARALLEL_NEEDS_TP,
    SEQUENCE_SPLITS,
    offload_in,
    recompute_in,
    zero_in,
)
from planner.targets.target import Rule

ONE_MESH = tuple(
    same(field)
    for field in (
        "tp",
        "sequence_parallel",
        "cp",
        "ep",
        "etp",
        "replicas",
        "micro_batch_size",
        "zero",
        "recompute",
        "offload",
    )
)
"""Every degree and mode is one number for the whole job."""


def _interleaved_groups(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del problem
    if layout.schedule.virtual_stages == 1:
        return
    for d, pipeline in enumerate(layout.pipelines):
        stages, microbatches = len(pipeline.stages), pipeline.microbatches
        if stages < 2 or microbatches < stages or microbatches % stages:
            yield Violation(
                field=f"/pipelines/{d}/microbatches",
                value=microbatches,
                rule=f"must be a multiple of the {stages} stages, two at least, when interleaved",
                fix="use the schedule 1f1b, or another number of pipelines",
            )


INTERLEAVED_GROUPS = Rule(
    id="interleaved-groups",
    sentence="Interleaved pipelines have two stages at least and whole groups of micro-batches.",
    check=_interleaved_groups,
)


def _mtp_last(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del problem
    for d, pipeline in enumerate(layout.pipelines):
        for i, stage in enumerate(pipeline.stages):
            if stage.mtp and i == 0 and len(pipeline.stages) > 1:
                yield Violation(
                    field=f"/pipelines/{d}/stages/{i}/mtp",
                    value=stage.mtp,
                    rule="must not be on the first of several stages",
                    fix="put it on the last stage",
                )


MTP_NOT_FIRST = Rule(
    id="mtp-not-first",
    sentence="Multi-token prediction is not on the first of several stages.",
    check=_mtp_last,
)

MEGATRON_RULES = (
    DECODER_ONLY,
    ONE_VENDOR,
    *ONE_MESH,
    SAME_SPLIT,
    SAME_MICROBATCHES,
    schedules("1f1b", "interleaved"),
    INTERLEAVED_GROUPS,
    zero_in(0, 1),
    recompute_in("none", "selective", "full"),
    offload_in("none", "optimizer"),
    SEQUENCE_PARALLEL_NEEDS_TP,
    EXPERTS_NEED_SEQUENCE_PARALLEL,
    CONTEXT_SPLITS,
    SEQUENCE_SPLITS,
    HOSTS_IN_RANK_ORDER,
)
