"""The declared space: the set of layouts that a plan is the best of, as a versioned document."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType

from costmodel.errors import InputError
from costmodel.hardware.values import Cluster, Pool
from costmodel.job import RECOMPUTE_MODES, Job
from costmodel.layout.rule_tools import alternatives
from costmodel.layout.values import StageOption
from costmodel.model.graph import ModelGraph, Op
from costmodel.problem import Problem
from costmodel.schedules.registry import schedule
from planner.targets.registry import ANY, target_called
from planner.targets.target import Shape, Target

SPACE_VERSION = "space/1"
MICRO_BATCH_SIZES = (1, 2, 4, 8)
MAX_REPLICAS = 8
MAX_EXPERT_PARALLEL = 64
MAX_STAGES = 64
TEMPLATE_LIMIT = 8
INTERLEAVED = "interleaved"
"""With several runs of layers on each stage: ``planner.interleaving`` searches it."""

SEARCHED_SCHEDULES = ("1f1b", "gpipe", "zero-bubble", INTERLEAVED)
USUAL_SCHEDULES = ("1f1b", INTERLEAVED)
"""What ``auto`` means: the best of 1F1B, which keeps fewer activations, and interleaved."""

LONG_SEQUENCE = 16384
"""Context parallelism is offered from this many tokens per sequence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """What a layout may be made of.

    A layout is a multiset of at most ``template_limit`` different pipelines; a pipeline has at
    most ``max_stages`` stages, each holding at least one layer under one of ``options``, with the
    same number of sequences per micro-batch on all stages. Stages of different pipelines that share
    a layer have the same ZeRO stage. All layouts use the pools' chips at
    most once. ``pruned``: options that a named rule left out.
    """

    version: str
    target: str
    pools: tuple[str, ...]
    options: tuple[StageOption, ...]
    max_stages: int
    template_limit: int
    schedules: tuple[str, ...]
    pruned: Mapping[str, int]
    evaluator: str

    def document(self) -> dict[str, object]:
        """The space as plain data: the sets that the options are drawn from."""

        def values(name: str, pool: str) -> list[object]:
            found = {getattr(o, name) for o in self.options if o.pool == pool}
            return sorted(found, key=_recompute_order if name == "recompute" else None)

        names = [
            "tp",
            "cp",
            "ep",
            "etp",
            "replicas",
            "micro_batch_size",
            "sequence_parallel",
            "zero",
            "recompute",
        ]
        return {
            "pools": {pool: {name: values(name, pool) for name in names} for pool in self.pools},
            "options": len(self.options),
            "max_stages": self.max_stages,
            "template_limit": self.template_limit,
            "schedules": list(self.schedules),
            "target": self.target,
            "evaluator": self.evaluator,
        }


def _recompute_order(value: object) -> int:
    return RECOMPUTE_MODES.index(str(value))


def declare(model: ModelGraph, cluster: Cluster, job: Job, *, target: str, evaluator: str) -> Space:
    """The space of a problem: every rule that leaves options out is named and counted."""
    if job.schedule not in (None, *SEARCHED_SCHEDULES):
        raise InputError.of(
            field="/job/schedule",
            value=job.schedule,
            rule="must be a schedule that the search covers",
            fix=f"use auto, {alternatives(SEARCHED_SCHEDULES)}",
        )
    pruned: Counter[str] = Counter()
    options: list[StageOption] = []
    for pool in cluster.pools:
        for option in _candidates(model, pool, job):
            rule = _broken_rule(option, model, pool, job)
            if rule is None:
                options.append(option)
            else:
                pruned[rule] += 1
    everything = Space(
        version=SPACE_VERSION,
        target=ANY,
        pools=tuple(pool.name for pool in cluster.pools),
        options=tuple(options),
        max_stages=min(MAX_STAGES, model.num_layers),
        template_limit=TEMPLATE_LIMIT,
        schedules=(job.schedule,) if job.schedule else USUAL_SCHEDULES,
        pruned=MappingProxyType(dict(sorted(pruned.items()))),
        evaluator=evaluator,
    )
    problem = Problem(model=model, cluster=cluster, job=job)
    return clip(everything, problem, target_called(target))


def clip(space: Space, problem: Problem, target: Target) -> Space:
    """The space with what the target's rules keep; what they leave out is counted by rule."""
    shape = target.shape
    broken = {option: target.broken_by(problem, option) for option in space.options}
    pruned = Counter(rule for rule in broken.values() if rule is not None)
    schedules = tuple(kind for kind in space.schedules if _runs(kind, shape))
    if not schedules:
        pruned["schedule"] += sum(rule is None for rule in broken.values())
    return replace(
        space,
        target=target.label,
        options=tuple(option for option, rule in broken.items() if rule is None and schedules),
        schedules=schedules or space.schedules,
        max_stages=min(space.max_stages, max(shape.depths, default=space.max_stages)),
        template_limit=min(
            space.template_limit, 1 if shape.one_shape else shape.templates or space.template_limit
        ),
        pruned=MappingProxyType({**space.pruned, **dict(sorted(pruned.items()))}),
    )


def _runs(kind: str, shape: Shape) -> bool:
    """Whether layouts of the shape may have this schedule; all but one have one chunk a stage."""
    fits = any(v > 1 for v in shape.chunks) if kind == INTERLEAVED else 1 in shape.chunks
    return (fits or not shape.chunks) and (not shape.schedules or kind in shape.schedules)


def unusable_pools(cluster: Cluster, job: Job) -> tuple[str, ...]:
    """Pools whose chips do not compute in the job's precision."""
    return tuple(p.name for p in cluster.pools if job.precision in p.chip.unsupported)


def restrict(space: Space, keep: tuple[StageOption, ...]) -> Space:
    """The space with these options only."""
    return replace(space, options=keep)


def _powers(limit: int) -> tuple[int, ...]:
    return tuple(2**k for k in range(limit.bit_length()) if 2**k <= limit)


def _candidates(model: ModelGraph, pool: Pool, job: Job) -> Iterator[StageOption]:
    is_moe = _expert_count(model) > 0
    micro = (job.micro_batch_size,) if job.micro_batch_size else MICRO_BATCH_SIZES
    modes = (job.recompute,) if job.recompute else _recompute_modes(job)
    cp = _powers(pool.scale_up_domain) if job.sequence_length >= LONG_SEQUENCE else (1,)
    ep = _powers(MAX_EXPERT_PARALLEL) if is_moe else (1,)
    degrees = product(_powers(pool.scale_up_domain), cp, ep, _replicas(is_moe), micro)
    for t, c, e, r, b in degrees:
        for zero, mode in product((1, 2, 3), modes):
            yield StageOption(
                pool=pool.name,
                tp=t,
                cp=c,
                ep=e,
                replicas=r,
                micro_batch_size=b,
                sequence_parallel=t > 1,
                zero=zero,
                recompute=mode,
            )


def _recompute_modes(job: Job) -> tuple[str, ...]:
    """All; with weight gradients put off only none, since they need what would be dropped."""
    apart = job.schedule is not None and schedule(job.schedule).program is not None
    return RECOMPUTE_MODES[:1] if apart else RECOMPUTE_MODES


def _replicas(is_moe: bool) -> tuple[int, ...]:
    return _powers(MAX_EXPERT_PARALLEL if is_moe else MAX_REPLICAS)


def _broken_rule(option: StageOption, model: ModelGraph, pool: Pool, job: Job) -> str | None:
    """Name of the first rule that leaves the option out; None when it stays."""
    ranks = option.tp * option.cp * option.replicas
    experts = _expert_count(model)
    rules = {
        "precision_of_the_chip": job.precision not in pool.chip.unsupported,
        "tp_divides_the_model": _tp_divides(model, option.tp),
        "tp_cp_within_scale_up": option.tp * option.cp <= pool.scale_up_domain,
        "stage_within_pool": ranks <= pool.num_chips,
        "samples_within_batch": option.samples <= job.global_batch_size,
        "sequence_splits": job.sequence_length % (option.tp * option.cp * 2) == 0
        or option.tp * option.cp == 1,
        "experts_divisible": option.ep == 1 or (experts > 0 and experts % option.ep == 0),
        "expert_group_fills_replicas": experts == 0
        or option.replicas == max(1, option.ep // (option.tp * option.cp)),
        "expert_group_divides_stage": ranks % (option.ep * option.etp) == 0,
    }
    return next((name for name, holds in rules.items() if not holds), None)


def _tp_divides(model: ModelGraph, tp: int) -> bool:
    """Whether every dimension that tensor parallelism splits is a multiple of tp.

    The vocabulary is padded and experts are split by ep and etp, so neither counts.
    """
    return all(
        block.dims[dim] % tp == 0
        for block in model.blocks.values()
        for op in block.ops
        if _counts(op)
        for dim in op.tp_dims
        if dim != "vocab"
    )


def _counts(op: Op) -> bool:
    return op.kind not in {"experts", "embedding", "head"}


def _expert_count(model: ModelGraph) -> int:
    """Routed experts of a layer; 0 for a dense model."""
    return max((block.dims.get("experts", 0) for block in model.blocks.values()), default=0)
