"""Which part of each weight each rank holds, and which ranks have to add up its gradient.

A *box* is a half-open range per dimension. Ranks of pipelines with different tp or ep hold
different boxes of the same weight; the common refinement of all boxes cuts it into *atoms*, each
held whole by a fixed set of ranks. Atoms with the same holders form one gradient group.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import ceil, gcd, prod

from costmodel.job import Job
from costmodel.layout.instances import parameter_name, stage_instances
from costmodel.layout.ranks import Rank, rank_table, stage_ranks
from costmodel.layout.values import Layout, StageOption
from costmodel.model.graph import Block, ModelGraph, Op, Weight
from costmodel.model.placement import gradient_is_partial, is_sharded

Box = tuple[tuple[int, int], ...]

EXPERT_DIMS = {"experts": "ep", "expert_ffn": "etp"}
"""Dimensions of an ``experts`` op -> the degree that splits them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """One rank's part of one parameter.

    box: its range per dimension; beyond ``sizes`` lie rows of vocabulary padding.
    sizes: the whole parameter, unpadded.
    lanes: sets of ranks that each reduce the gradient on their own; ``lane`` is the rank's.
    share: factor on the rank's gradient before the sum over the lane. 1 where it holds a partial
        sum; less than 1 where several ranks of the lane hold the same value.
    """

    rank: int
    parameter: str
    box: Box
    sizes: tuple[int, ...]
    lane: int
    share: float
    zero: int
    stage: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """A box of a parameter that all ranks of its group hold whole."""

    parameter: str
    box: Box

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(stop - start for start, stop in self.box)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientGroup:
    """Ranks that hold the same atoms and sum their gradients.

    kind: ``dp``, or ``embedding`` for a tied weight that lives on several stages.
    zero: what the group shards: the least of its stages' choices, and not the weights (3) of a
        tied weight, whose stages use it at different times. rounds: micro-batches of its
        longest pipeline, after each of which gradients are summed with ZeRO 2 and 3.
    """

    kind: str
    ranks: tuple[int, ...]
    zero: int
    rounds: int
    atoms: tuple[Atom, ...]

    @property
    def elements(self) -> int:
        """Elements of all atoms."""
        return sum(atom.elements for atom in self.atoms)

    @property
    def shard_elements(self) -> int:
        """Elements of one rank's shard when the flat buffer is cut evenly (padded at its end)."""
        return ceil(self.elements / len(self.ranks))


def padded_vocabulary(vocab: int, job: Job, tp: int) -> int:
    """Vocabulary rows with padding: a multiple of the job's divisor times tp."""
    unit = job.vocab_divisor * tp
    return ceil(vocab / unit) * unit


def weight_box(
    op: Op, weight: Weight, block: Block, stage: tuple[StageOption, Rank], job: Job
) -> Box:
    """The rank's range of each dimension of a weight: even parts over tp, or over ep and etp."""
    option, rank = stage
    box: list[tuple[int, int]] = []
    for dim in weight.dims:
        size, parts, part = block.dims[dim], 1, 0
        if op.kind == "experts" and dim in EXPERT_DIMS:
            parts, part = getattr(option, EXPERT_DIMS[dim]), getattr(rank, EXPERT_DIMS[dim])
        elif op.kind != "experts" and dim in op.tp_dims:
            parts, part = option.tp, rank.tp
            size = padded_vocabulary(size, job, option.tp) if dim == "vocab" else size
        if size % parts:
            raise ValueError(
                f"{block.name}.{op.name}: {dim} of size {size} does not split by {parts}"
            )
        box.append((size // parts * part, size // parts * (part + 1)))
    return tuple(box)


def is_partial(op: Op, weight: Weight, option: StageOption) -> bool:
    """Whether the gradients of the tp ranks that hold the same box have to be summed."""
    if op.kind == "experts":
        return option.sequence_parallel
    return gradient_is_partial(op, weight, sequence_parallel=option.sequence_parallel)


def holdings(graph: ModelGraph, layout: Layout, job: Job) -> Iterator[Holding]:
    """Every rank's part of every trainable parameter, once per rank and parameter."""
    lanes = _lane_counts(graph, layout)
    seen: set[tuple[int, str]] = set()
    for (p, _, s), ranks in stage_ranks(rank_table(layout)).items():
        stage = layout.pipelines[p].stages[s]
        for name, op, weight, block in stage_weights(graph, layout, p, s):
            for rank in ranks:
                if (rank.rank, name) in seen or not weight.trainable:
                    continue
                seen.add((rank.rank, name))
                lane, share = _lane(op, weight, stage.option, rank, lanes[name])
                yield Holding(
                    rank=rank.rank,
                    parameter=name,
                    box=weight_box(op, weight, block, (stage.option, rank), job),
                    sizes=tuple(block.dims[dim] for dim in weight.dims),
                    lane=lane,
                    share=share,
                    zero=stage.option.zero,
                    stage=s,
                )


def stage_weights(
    graph: ModelGraph, layout: Layout, pipeline: int, stage: int
) -> Iterator[tuple[str, Op, Weight, Block]]:
    """Parameter name, op, weight and block of every weight of a stage."""
    for instance in stage_instances(graph, layout.pipelines[pipeline].stages[stage]):
        block = graph.blocks[instance.block]
        for op in block.ops:
            for weight in op.weights:
                yield parameter_name(graph, instance, op, weight), op, weight, block


def _replicated(op: Op, weight: Weight) -> bool:
    return op.kind != "experts" and not is_sharded(op, weight)


def _lane_counts(graph: ModelGraph, layout: Layout) -> dict[str, int]:
    """Lanes of each parameter: the common divisor of the tp degrees that hold it equal, else 1."""
    counts: dict[str, int] = {}
    for p, pipeline in enumerate(layout.pipelines):
        for s, stage in enumerate(pipeline.stages):
            for name, op, weight, _ in stage_weights(graph, layout, p, s):
                equal = _replicated(op, weight) and not is_partial(op, weight, stage.option)
                counts[name] = gcd(counts.get(name, 0), stage.option.tp if equal else 1)
    return counts


def _lane(op: Op, weight: Weight, option: StageOption, rank: Rank, lanes: int) -> tuple[int, float]:
    """(lane, share) of a rank: tp ranks with equal gradients spread evenly over the lanes."""
    if option.tp == 1 or is_partial(op, weight, option):
        return 0, 1.0
    if op.kind == "experts":
        return 0, 1.0 / option.tp
    if not _replicated(op, weight):
        return 0, 1.0
    return rank.tp * lanes // option.tp, lanes / option.tp


def gradient_groups(graph: ModelGraph, layout: Layout, job: Job) -> tuple[GradientGroup, ...]:
    """All gradient groups, also those of one rank, in a fixed order."""
    found: dict[tuple[str, int, tuple[int, ...]], list[Atom]] = {}
    microbatches = [layout.pipelines[r.pipeline].microbatches for r in rank_table(layout)]
    by_parameter: dict[str, list[Holding]] = {}
    for holding in holdings(graph, layout, job):
        by_parameter.setdefault(holding.parameter, []).append(holding)
    for name, held in by_parameter.items():
        tied = any(tie.owner == name for tie in graph.ties)
        for lane in sorted({h.lane for h in held}):
            for atom, owners in _atoms(name, [h for h in held if h.lane == lane]):
                stages = {h.stage for h in owners}
                kind = "embedding" if tied and len(stages) > 1 else "dp"
                most = 2 if kind == "embedding" else 3
                zero = min(most, *(h.zero for h in owners))
                key = kind, zero, tuple(h.rank for h in owners)
                found.setdefault(key, []).append(atom)
    return tuple(
        GradientGroup(
            kind=kind,
            ranks=ranks,
            zero=zero,
            rounds=max(microbatches[rank] for rank in ranks),
            atoms=tuple(atoms),
        )
        for (kind, zero, ranks), atoms in sorted(found.items(), key=lambda item: item[0])
    )


def _atoms(name: str, held: Sequence[Holding]) -> Iterator[tuple[Atom, list[Holding]]]:
    cuts = [_cuts(held, axis, size) for axis, size in enumerate(held[0].sizes)]
    for box in product(*(tuple(pairwise(c)) for c in cuts)):
        owners = [h for h in held if _contains(h.box, box)]
        if owners:
            yield Atom(parameter=name, box=box), owners


def _cuts(held: Sequence[Holding], axis: int, size: int) -> list[int]:
    ends = {end for h in held for end in h.box[axis]}
    return sorted({min(end, size) for end in ends} | {0, size})


def _contains(outer: Box, inner: Box) -> bool:
    pairs = zip(outer, inner, strict=True)
    return all(start <= a and b <= stop for (start, stop), (a, b) in pairs)
