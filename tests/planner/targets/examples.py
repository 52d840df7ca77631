"""A layout that every target executes, and for every rule a change that breaks it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from types import MappingProxyType
from typing import Any

from costmodel.job import Job
from costmodel.layout.values import Layout, Pipeline, Schedule, Stage, StageOption
from costmodel.model.graph import Tie
from costmodel.problem import Problem
from planner.targets.registry import targets
from planner.targets.target import Target
from tests.planner.tiny import tiny_cluster, tiny_model

NO_TENSOR_PARALLEL = ("deepspeed",)
SHARDED = ("torchtitan",)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A problem and a layout of it."""

    problem: Problem
    layout: Layout

    def everywhere(self, **changes: Any) -> "Case":
        """Options of all stages changed."""
        return self.at(None, None, **changes)

    def at(self, pipeline: int | None, stage: int | None, **changes: Any) -> "Case":
        """Options of one stage (all where None) changed."""
        pipelines = tuple(
            replace(
                p,
                stages=tuple(
                    replace(s, option=replace(s.option, **changes))
                    if pipeline in (None, d) and stage in (None, i)
                    else s
                    for i, s in enumerate(p.stages)
                ),
            )
            for d, p in enumerate(self.layout.pipelines)
        )
        return replace(self, layout=replace(self.layout, pipelines=pipelines))

    def with_pipeline(self, d: int, **changes: Any) -> "Case":
        """One pipeline changed."""
        pipelines = list(self.layout.pipelines)
        pipelines[d] = replace(pipelines[d], **changes)
        return replace(self, layout=replace(self.layout, pipelines=tuple(pipelines)))

    def scheduled(self, kind: str, virtual_stages: int = 1) -> "Case":
        """Another schedule."""
        schedule = Schedule(kind=kind, virtual_stages=virtual_stages)
        return replace(self, layout=replace(self.layout, schedule=schedule))

    def with_model(self, **changes: Any) -> "Case":
        """Another model."""
        problem = replace(self.problem, model=replace(self.problem.model, **changes))
        return replace(self, problem=problem)

    def with_vendor(self, pool: int, vendor: str) -> "Case":
        """Chips of another vendor in one pool."""
        pools = list(self.problem.cluster.pools)
        pools[pool] = replace(pools[pool], chip=replace(pools[pool].chip, vendor=vendor))
        cluster = replace(self.problem.cluster, pools=tuple(pools))
        return replace(self, problem=replace(self.problem, cluster=cluster))

    def with_sequence(self, length: int) -> "Case":
        """Another sequence length."""
        return replace(
            self,
            problem=replace(self.problem, job=replace(self.problem.job, sequence_length=length)),
        )


def good_case(target: Target) -> Case:
    """Two copies of two stages, one in each pool, that the target executes."""
    vendor = "huawei" if target.name == "mindspeed" else "v"
    cluster = tiny_cluster(Random(1), 3, 1)
    pools = tuple(
        replace(
            p, nodes=4, chips_per_node=2, scale_up_domain=2, chip=replace(p.chip, vendor=vendor)
        )
        for p in cluster.pools
    )
    tp = 1 if target.name in NO_TENSOR_PARALLEL else 2
    zero = 2 if target.name in SHARDED else 1
    options = [StageOption(pool=p.name, tp=tp, sequence_parallel=tp > 1, zero=zero) for p in pools]
    stages = (
        Stage(option=options[0], chunks=((0, 2),), embedding=True),
        Stage(option=options[1], chunks=((2, 4),), head=True),
    )
    job = Job(global_batch_size=8, sequence_length=1024)
    return Case(
        problem=Problem(model=tiny_model(4), cluster=replace(cluster, pools=pools), job=job),
        layout=Layout(pipelines=(Pipeline(stages=stages, microbatches=4, count=2),)),
    )


def split(case: Case) -> Case:
    """The copies as two pipelines."""
    [pipeline] = case.layout.pipelines
    one = replace(pipeline, count=1)
    return replace(case, layout=replace(case.layout, pipelines=(one, one)))


def recut(case: Case, d: int, cut: int) -> Case:
    """Pipeline d cut elsewhere."""
    first, second = case.layout.pipelines[d].stages
    stages = (replace(first, chunks=((0, cut),)), replace(second, chunks=((cut, 4),)))
    return case.with_pipeline(d, stages=stages)


def three_stages(case: Case, pools: tuple[int, int, int]) -> Case:
    """One pipeline over pools in this order."""
    option = case.layout.pipelines[0].stages[0].option
    names = [case.problem.cluster.pools[k].name for k in pools]
    cuts = ((0, 2), (2, 3), (3, 4))
    stages = tuple(
        Stage(
            option=replace(option, pool=name),
            chunks=(cut,),
            embedding=cut[0] == 0,
            head=cut[1] == 4,
        )
        for name, cut in zip(names, cuts, strict=True)
    )
    pipeline = Pipeline(stages=stages, microbatches=8)
    return replace(case, layout=replace(case.layout, pipelines=(pipeline,)))


def one_stage(case: Case, **changes: Any) -> Case:
    """The whole model on one stage."""
    option = replace(case.layout.pipelines[0].stages[0].option, **changes)
    stage = Stage(option=option, chunks=((0, 4),), embedding=True, head=True)
    return case.with_pipeline(0, stages=(stage,))


def uneven_chunks(case: Case) -> Case:
    """Interleaved with unlike chunks."""
    first, second = case.layout.pipelines[0].stages
    uneven = (replace(first, chunks=((0, 1), (2, 2))), replace(second, chunks=((1, 2), (2, 4))))
    return case.with_pipeline(0, stages=uneven).scheduled("interleaved", 2)


def crowded(case: Case) -> Case:
    """Stages that leave their pool and come back with half a host each."""
    pools = list(case.problem.cluster.pools)
    pools[0] = replace(pools[0], nodes=1, chips_per_node=4, scale_up_domain=4)
    problem = replace(case.problem, cluster=replace(case.problem.cluster, pools=tuple(pools)))
    return three_stages(replace(case, problem=problem), (0, 1, 0))


ENCODER = MappingProxyType({"main": None, "encoder": 8})
BREAKS: dict[str, Callable[[Case], Case]] = {
    "decoder-only": lambda c: c.with_model(streams=ENCODER),
    "no-mtp": lambda c: c.with_model(mtp=("layer",)),
    "one-vendor": lambda c: c.with_vendor(1, "other"),
    "vendor": lambda c: c.with_vendor(1, "other"),
    "same-tp": lambda c: c.at(0, 1, tp=4),
    "same-sequence-parallel": lambda c: c.at(
        0, 1, sequence_parallel=not c.layout.pipelines[0].stages[0].option.sequence_parallel
    ),
    "same-cp": lambda c: c.at(0, 1, cp=2),
    "same-ep": lambda c: c.at(0, 1, ep=2),
    "same-etp": lambda c: c.at(0, 1, etp=2),
    "same-replicas": lambda c: c.at(0, 1, replicas=2),
    "same-micro-batch": lambda c: c.at(0, 1, micro_batch_size=2),
    "same-zero": lambda c: c.at(0, 1, zero=0),
    "same-recompute": lambda c: c.at(0, 1, recompute="full"),
    "same-split": lambda c: recut(split(c), 1, 1),
    "same-microbatches": lambda c: split(c).with_pipeline(1, microbatches=3),
    "schedule": lambda c: c.scheduled("zigzag"),
    "interleaved-groups": lambda c: c.with_pipeline(0, microbatches=3).scheduled("interleaved", 2),
    "zero": lambda c: c.everywhere(zero=3),
    "torchtitan.zero": lambda c: c.everywhere(zero=1),
    "recompute": lambda c: c.everywhere(recompute="other"),
    "same-offload": lambda c: c.at(0, 1, offload="optimizer"),
    "offload": lambda c: c.everywhere(offload="activations"),
    "optimizer-offload-zero": lambda c: c.everywhere(offload="optimizer", zero=0),
    "sequence-parallel-needs-tp": lambda c: c.everywhere(tp=1, sequence_parallel=True),
    "experts-need-sequence-parallel": lambda c: c.everywhere(ep=2, sequence_parallel=False),
    "context-splits": lambda c: c.everywhere(cp=2).with_sequence(1026),
    "sequence-splits": lambda c: c.with_sequence(1025),
    "hosts-in-rank-order": crowded,
    "mtp-not-first": lambda c: c.with_pipeline(
        0,
        stages=(
            replace(c.layout.pipelines[0].stages[0], mtp=1),
            c.layout.pipelines[0].stages[1],
        ),
    ),
    "uneven-without-chunks": uneven_chunks,
    "sequence-parallel": lambda c: c.everywhere(sequence_parallel=False),
    "expert-tensor-parallel": lambda c: c.everywhere(ep=2, etp=3),
    "experts-hold-tp-and-cp": lambda c: c.everywhere(ep=3),
    "even-split": lambda c: recut(c, 0, 1),
    "zero-or-stages": lambda c: c.everywhere(zero=2),
    "tensor-parallel-or-stages": lambda c: c.everywhere(tp=2),
    "tensor-parallel-zero": lambda c: one_stage(c, tp=2, zero=3),
    "no-sequence-parallel": lambda c: one_stage(c, tp=2, sequence_parallel=True),
    "no-cp": lambda c: c.everywhere(cp=2),
    "no-ep": lambda c: c.everywhere(ep=2),
    "no-etp": lambda c: c.everywhere(etp=2),
    "one-shape": lambda c: recut(split(c), 1, 1),
    "sequence-parallel-where-tp-differs": lambda c: c.at(0, 1, tp=4, sequence_parallel=False),
    "ends-alike": lambda c: c.at(0, 1, tp=1).with_model(ties=(Tie(owner="a.b.c", copy="d.e.f"),)),
    "recompute-rows": lambda c: c.at(0, 1, recompute="selective"),
    "experts-everywhere": lambda c: c.at(0, 1, ep=2),
    "vendors-adjacent": lambda c: three_stages(c.with_vendor(1, "other"), (0, 1, 2)),
    "chunks-unsharded": lambda c: c.everywhere(zero=2).scheduled("interleaved", 2),
    "weights-in-step": lambda c: split(c).everywhere(zero=3).with_pipeline(1, microbatches=3),
}
"""By rule, or by target and rule where targets differ."""


def broken_case(target: Target, rule_id: str) -> Case:
    """A case that breaks this rule of the target."""
    change = BREAKS.get(f"{target.name}.{rule_id}", BREAKS.get(rule_id))
    assert change is not None, f"no example breaks {target.label} {rule_id}"
    return change(good_case(target))


def all_rules() -> list[tuple[Target, str]]:
    """Every rule of every target."""
    return [(target, rule.id) for target in targets().values() for rule in target.rules]
