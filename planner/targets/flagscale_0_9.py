"""FlagScale 0.9: one pipeline of process meshes, each with degrees of its own.

``hetero_process_meshes`` lists tp, cp, ep, dp and pp of every mesh in the order of the pipeline,
``hetero_pipeline_layer_split`` the layers of every stage. A mesh is a run of neighbouring stages
with one set of degrees; its dp counts copies times replicas.
"""

from collections.abc import Iterator

from costmodel.errors import Violation
from costmodel.layout.rule_tools import Place, places
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from planner.targets.host_rules import HOSTS_IN_RANK_ORDER
from planner.targets.layout_rules import (
    DECODER_ONLY,
    ONE_SHAPE,
    SAME_MICROBATCHES,
    same,
    schedules,
)
from planner.targets.stage_rules import (
    SEQUENCE_PARALLEL_NEEDS_TP,
    SEQUENCE_SPLITS,
    offload_in,
    only_one,
    zero_in,
)
from planner.targets.target import Rule, Target


def _sequence_parallel_where_tp_differs(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del problem
    if len({place.option.tp for place in places(layout)}) < 2:
        return
    for place in places(layout):
        if place.option.tp > 1 and not place.option.sequence_parallel:
            rule = "must be true where meshes differ in tp"
            yield place.broken("sequence_parallel", rule, "write true")


def _ends(layout: Layout) -> Iterator[tuple[Place, Place]]:
    """First and last stage of every pipeline that has several."""
    for d, pipeline in enumerate(layout.pipelines):
        own = [place for place in places(layout) if place.pipeline == d]
        if len(pipeline.stages) > 1:
            yield own[0], own[-1]


def _ends_joined(problem: Problem) -> bool:
    """Whether the last stage holds a copy of the embedding: tied, or for multi-token prediction."""
    return bool(problem.model.mtp or problem.model.ties)


def _ends_alike(problem: Problem, layout: Layout) -> Iterator[Violation]:
    if not _ends_joined(problem):
        return
    for first, last in _ends(layout):
        a, b = first.option, last.option
        if a.tp != b.tp:
            rule = f"must be {a.tp} as on the first stage, which shares the embedding"
            yield last.broken("tp", rule, f"write {a.tp}, or untie the embeddings")
        if max(a.replicas, b.replicas) % min(a.replicas, b.replicas):
            rule = f"must divide {a.replicas} replicas of the first stage or be a multiple of them"
            yield last.broken("replicas", rule, f"write {a.replicas}")


def _recompute_rows(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del problem
    modes = {place.option.recompute for place in places(layout)}
    if len(modes) < 2:
        return
    for place in places(layout):
        if place.option.recompute == "selective":
            rule = "must not be selective where stages differ: rows by stage are full or none"
            yield place.broken("recompute", rule, "write none or full, or selective everywhere")


def _experts_everywhere(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del problem
    spread = {place.option.ep > 1 for place in places(layout)}
    for place in places(layout):
        if len(spread) > 1 and place.option.ep == 1:
            rule = "must be above 1 where other stages have expert parallelism"
            yield place.broken("ep", rule, "use expert parallelism on all stages or on none")


def _vendors_adjacent(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """FlagCX numbers the ranks of one vendor in a row in every communicator."""
    for d in range(len(layout.pipelines)):
        seen: list[str] = []
        for place in (place for place in places(layout) if place.pipeline == d):
            vendor = problem.cluster.pool(place.option.pool).chip.vendor
            if vendor in seen[:-1]:
                rule = f"must keep the stages on chips of {vendor} next to each other"
                yield place.broken("pool", rule, "order the pools by vendor")
            if vendor not in seen:
                seen.append(vendor)


TARGET = Target(
    name="flagscale",
    version="0.9",
    title="FlagScale 0.9 with process meshes",
    source="github.com/FlagOpen/FlagScale da4935e (2025-11-13): train/hetero",
    maintained=True,
    rules=(
        DECODER_ONLY,
        ONE_SHAPE,
        SAME_MICROBATCHES,
        schedules("1f1b"),
        only_one("cp", "process meshes are asserted to have no context parallelism"),
        zero_in(0, 1),
        same("zero"),
        offload_in("none"),
        SEQUENCE_PARALLEL_NEEDS_TP,
        SEQUENCE_SPLITS,
        Rule(
            id="sequence-parallel-where-tp-differs",
            sentence="Where meshes differ in tp, those with tp above 1 use sequence parallelism.",
            check=_sequence_parallel_where_tp_differs,
        ),
        Rule(
            id="ends-alike",
            sentence="With tied embeddings or multi-token prediction the first and last stage "
            "have one tp, and the replicas of one divide those of the other.",
            check=_ends_alike,
        ),
        Rule(
            id="recompute-rows",
            sentence="Stages that differ in recompute are full or none; selective is for all.",
            check=_recompute_rows,
        ),
        Rule(
            id="experts-everywhere",
            sentence="Expert parallelism is on all meshes or on none.",
            check=_experts_everywhere,
        ),
        Rule(
            id="vendors-adjacent",
            sentence="Stages on chips of one vendor are neighbours, as FlagCX numbers ranks.",
            check=_vendors_adjacent,
        ),
        HOSTS_IN_RANK_ORDER,
    ),
)
