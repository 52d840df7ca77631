"""What a prediction takes for granted: assumed numbers of the model, chips and links used."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, pairwise

from costmodel.hardware.assumptions import Use, assumptions_for
from costmodel.hardware.connection import connection
from costmodel.hardware.values import COLLECTIVES, Cluster, Pool
from costmodel.holders import segments
from costmodel.layout.values import Layout, Pipeline, StageOption
from costmodel.model.graph import ModelGraph
from costmodel.model.placement import Collective, conversions
from costmodel.model.placement import collectives as steps_of
from costmodel.network.phases import Side, joined_rings, merge
from costmodel.problem import Problem
from costmodel.same import SameProblem
from costmodel.stage.local import ATTENTION_PRECISION

HALVES = (Collective.REDUCE_SCATTER.value, Collective.ALL_GATHER.value)
"""The two halves of an all-reduce, in which gradients are summed."""


def assumptions_of(problem: Problem, layout: Layout | None) -> tuple[str, ...]:
    """Assumed numbers that the prediction of this layout reads, as sentences.

    Without a layout: those that any layout of the problem could read.
    """
    use = _any_use(problem) if layout is None else layout_use(problem, layout)
    return (*problem.model.assumptions, *assumptions_for(problem.cluster, use))


def layout_use(problem: Problem, layout: Layout) -> Use:
    """The chips, links and collectives that the prediction of a layout reads."""
    links = _Links(cluster=problem.cluster)
    stages = [stage for pipeline in layout.pipelines for stage in pipeline.stages]
    for option, head in dict.fromkeys((stage.option, stage.head) for stage in stages):
        _inside_stage(problem, option, links, head=head)
    for pipeline in layout.pipelines:
        _along(problem, pipeline, links)
    for segment in segments(layout):
        _summed(problem, [_held(layout, d, i) for d, i in segment.holders], links)
    return links.use({stage.option.pool for stage in stages}, _precisions(problem))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Links:
    """Collectives by the link that they run over, noted as they are found."""

    cluster: Cluster
    scale_up: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    scale_out: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    between: dict[frozenset[str], set[str]] = field(default_factory=dict[frozenset[str], set[str]])
    staged: set[frozenset[str]] = field(default_factory=set[frozenset[str]])

    def group(self, name: str, ranks: int, stride: int, collectives: Iterable[str]) -> None:
        """A group of one pool, `stride` chips apart."""
        if ranks <= 1:
            return
        pool = self.cluster.pool(name)
        if ranks * stride <= pool.scale_up_domain:
            self.scale_up.setdefault(name, set()).update(collectives)
            return
        self.scale_out.setdefault(name, set()).update(collectives)
        if min(ranks, pool.chips_per_node // stride) > 1:
            self.scale_up.setdefault(name, set()).update(collectives)

    def pair(self, first: str, second: str, collectives: Iterable[str]) -> None:
        """Chips of two pools, or of two nodes of one."""
        a, b = self.cluster.pool(first), self.cluster.pool(second)
        if a.island == b.island:
            for name in (first, second):
                self.scale_out.setdefault(name, set()).update(collectives)
        else:
            self.between.setdefault(frozenset((a.island, b.island)), set()).update(collectives)
        if connection(self.cluster, first, second).transport == "host-staged":
            self.staged.add(frozenset((first, second)))

    def use(self, pools: Iterable[str], precisions: Iterable[str]) -> Use:
        """All that was noted."""
        return Use(
            pools=set(pools),
            precisions=set(precisions),
            scale_up=self.scale_up,
            scale_out=self.scale_out,
            between=self.between,
            staged=self.staged,
        )


def _inside_stage(problem: Problem, option: StageOption, links: _Links, *, head: bool) -> None:
    """Tensor, context and expert parallel groups of a stage, with or without the head."""
    steps = _tensor_parallel(SameProblem(problem), option.sequence_parallel)
    links.group(option.pool, option.tp, 1, steps)
    if head:
        links.group(option.pool, option.tp, 1, [Collective.ALL_REDUCE.value])
    links.group(option.pool, option.cp, option.tp, HALVES)
    if _has_experts(problem.model):
        links.group(option.pool, option.ep, option.etp, [Collective.ALL_TO_ALL.value])
        links.group(option.pool, option.etp, 1, HALVES)


@lru_cache(maxsize=64)
def _tensor_parallel(of: SameProblem, sequence_parallel: bool) -> frozenset[str]:
    return frozenset(
        step.value
        for block in of.problem.model.blocks.values()
        for conversion in conversions(block)
        for way in steps_of(conversion, sequence_parallel=sequence_parallel)
        for step in way
    )


def _along(problem: Problem, pipeline: Pipeline, links: _Links) -> None:
    """Hand-overs between neighbouring stages, and weights that its ends share."""
    for sender, receiver in pairwise(stage.option for stage in pipeline.stages):
        pool = problem.cluster.pool(sender.pool)
        if sender.pool == receiver.pool and pool.num_chips <= pool.scale_up_domain:
            links.scale_up.setdefault(pool.name, set()).add("p2p")
        else:
            links.pair(sender.pool, receiver.pool, ["p2p"])
    first, last = pipeline.stages[0].option, pipeline.stages[-1].option
    if not problem.model.ties or len(pipeline.stages) == 1:
        return
    if first.pool == last.pool:
        links.group(first.pool, 2, first.num_chips, HALVES)
    else:
        links.pair(first.pool, last.pool, HALVES)


def _summed(problem: Problem, held: list[tuple[int, StageOption]], links: _Links) -> None:
    """Gradient sums of the stages that hold the same layers, dense and expert weights apart."""
    for of_experts in (False, True) if _has_experts(problem.model) else (False,):
        sides = merge(_side(count, option, of_experts) for count, option in held)
        rings = joined_rings(problem.cluster, sides)
        for ring in rings:
            for side in ring:
                links.group(side.pool, side.ranks, side.stride, HALVES)
            for a, b in combinations(ring, 2):
                links.pair(a.pool, b.pool, HALVES)
        for one, other in combinations(rings, 2):
            for a in one:
                for b in other:
                    links.pair(a.pool, b.pool, HALVES)


def _side(count: int, option: StageOption, of_experts: bool) -> Side:
    stride = option.ep * option.etp if of_experts else option.tp
    ranks = count * option.num_chips // stride
    return Side(pool=option.pool, ranks=ranks, stride=stride, payload_bytes=0.0)


def _any_use(problem: Problem) -> Use:
    """Every pool that has the job's precision, every link between them."""
    cluster, precision = problem.cluster, problem.job.precision
    pools = [pool for pool in cluster.pools if precision not in pool.chip.unsupported]
    experts = _has_experts(problem.model)
    every = [op for op in COLLECTIVES if experts or op != Collective.ALL_TO_ALL.value]
    return Use(
        pools=[pool.name for pool in pools],
        precisions=_precisions(problem),
        scale_up={pool.name: every for pool in pools},
        scale_out={pool.name: every for pool in pools},
        between=_between(cluster, pools, every),
    )


def _between(
    cluster: Cluster, pools: list[Pool], every: list[str]
) -> Mapping[frozenset[str], list[str]]:
    islands = {pool.island for pool in pools}
    pairs = (frozenset(link.islands) for link in cluster.between)
    return {pair: every for pair in pairs if pair <= islands}


def _precisions(problem: Problem) -> set[str]:
    precision = problem.job.precision
    return {precision, ATTENTION_PRECISION.get(precision, "bf16")}


def _has_experts(model: ModelGraph) -> bool:
    return any(op.kind == "experts" for block in model.blocks.values() for op in block.ops)


def _held(layout: Layout, pipeline: int, stage: int) -> tuple[int, StageOption]:
    found = layout.pipelines[pipeline]
    return found.count, found.stages[stage].option
