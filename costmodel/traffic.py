"""Bytes that one training step hands to each process group: a pure function of a plan.

Unit of account: what is passed to the communication call, summed over the members of the group.
All-reduce and reduce-scatter count their input, all-gather its output, all-to-all its input, a
send its message. Groups of one rank communicate nothing.

Kinds: ``tp`` (changes of placement and the vocabulary-parallel loss), ``cp`` (keys and values),
``ep`` (dispatch and combine), ``etp`` (gather and scatter inside an expert group), ``pp``
(activations and their gradients between stages), ``dp`` and ``embedding`` (gradients, and updated
weights with ZeRO). An ``etp`` or ``ep`` group is named by all ranks of its expert grid, because
routing decides how much each part of the grid gets, not how much all of it gets.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType

from costmodel.job import Job
from costmodel.layout.instances import LAYER, stage_instances
from costmodel.layout.ranks import Rank, members, rank_table, stage_ranks
from costmodel.layout.shards import GradientGroup, gradient_groups
from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from costmodel.model.graph import Block, ModelGraph, Op
from costmodel.model.placement import collectives, conversions, splits

GroupKey = tuple[str, tuple[int, ...]]
"""Kind and ranks of a process group."""

LOSS_REDUCTIONS = 3
"""Numbers per token that a vocabulary-parallel cross entropy reduces: maximum, sum, target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Bytes per element of what travels."""

    activation: int
    gradient: int
    weight: int
    loss: int = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Bytes that one member passes to calls of one group, per micro-batch and block."""

    forward: int = 0
    backward: int = 0


def widths(job: Job) -> Widths:
    """Widths of a job's precision."""
    return Widths(
        activation=job.activation_bytes, gradient=job.gradient_bytes, weight=job.weight_bytes
    )


def forecast(
    graph: ModelGraph, layout: Layout, job: Job, *, element: Widths | None = None
) -> MappingProxyType[GroupKey, int]:
    """Payload bytes of one step per process group, summed over its members."""
    width = element or widths(job)
    total: Counter[GroupKey] = Counter()
    instances = stage_ranks(rank_table(layout))
    for (p, _, s), ranks in instances.items():
        pipeline = layout.pipelines[p]
        stage = _StageTraffic(graph=graph, job=job, stage=pipeline.stages[s], width=width)
        for kind, parallel in stage.per_member().items():
            for scope in _scopes(ranks, kind):
                total[kind, scope] += parallel * len(scope) * pipeline.microbatches
    total.update(_boundaries(graph, layout, job, width))
    for group in gradient_groups(graph, layout, job):
        total[group.kind, group.ranks] += _gradient_bytes(group, width)
    return MappingProxyType({key: size for key, size in total.items() if size})


def _scopes(ranks: tuple[Rank, ...], kind: str) -> Iterator[tuple[int, ...]]:
    """Ranks of each group, or of each expert grid."""
    if kind in ("tp", "cp"):
        for group in members(ranks, kind):
            yield tuple(r.rank for r in group)
        return
    for index in sorted({r.expert_data for r in ranks}):
        yield tuple(r.rank for r in ranks if r.expert_data == index)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StageTraffic:
    """Traffic inside one stage instance, per member and micro-batch."""

    graph: ModelGraph
    job: Job
    stage: Stage
    width: Widths

    def per_member(self) -> dict[str, int]:
        """Bytes per kind over all blocks; a fully recomputed layer runs its forward twice."""
        total: Counter[str] = Counter()
        for instance in stage_instances(self.graph, self.stage):
            full = self.stage.option.recompute == "full" and instance.part == LAYER
            for kind, passes in self._block(self.graph.blocks[instance.block]).items():
                total[kind] += passes.forward * (2 if full else 1) + passes.backward
        return dict(total)

    def _block(self, block: Block) -> dict[str, Passes]:
        option = self.stage.option
        tokens = option.micro_batch_size * sequence_tokens(self.graph, block, self.job) // option.cp
        found: dict[str, Passes] = {}
        if option.tp > 1:
            found["tp"] = tensor_parallel(block, option, tokens, self.width)
        if option.cp > 1:
            found["cp"] = context_parallel(block, option, tokens * option.cp, self.width)
        stream = tokens // option.tp if option.sequence_parallel else tokens
        if option.ep > 1:
            found["ep"] = _both(2 * _routed(block, stream) * self.width.activation)
        if option.etp > 1:
            found["etp"] = _both(2 * option.etp * _routed(block, stream) * self.width.activation)
        return found


def sequence_tokens(graph: ModelGraph, block: Block, job: Job) -> int:
    """Tokens of one sequence of the block's stream."""
    return graph.streams[block.stream] or job.sequence_length


def tensor_parallel(block: Block, option: StageOption, tokens: int, width: Widths) -> Passes:
    """Every change of placement; payload ``tokens x elements`` for each of its collectives.

    The loss adds ``LOSS_REDUCTIONS`` numbers per token and head, forward only.
    """
    forward = backward = 0
    for conversion in conversions(block):
        ahead, back = collectives(conversion, sequence_parallel=option.sequence_parallel)
        payload = tokens * conversion.elements_per_token * width.activation
        forward += payload * len(ahead)
        backward += payload * len(back)
    heads = sum(op.kind == "head" for op in block.ops)
    forward += heads * LOSS_REDUCTIONS * tokens * width.loss
    return Passes(forward=forward, backward=backward)


def context_parallel(block: Block, option: StageOption, tokens: int, width: Widths) -> Passes:
    """Keys and values of the whole sequence: gathered forward; gathered and scattered backward.

    tokens: of the whole sequence.
    """
    payload = 0
    for op in block.ops:
        if op.kind == "attention":
            payload += sum(_local_elements(op, block, name, option) for name in op.inputs[1:3])
    payload *= tokens * width.activation
    return Passes(forward=payload, backward=2 * payload)


def _local_elements(op: Op, block: Block, tensor: str, option: StageOption) -> int:
    dims = block.tensors[tensor]
    size = block.elements(dims)
    return size // option.tp if splits(op, dims) else size


def _routed(block: Block, tokens: int) -> int:
    """Elements that one member's tokens send to their experts: ``tokens x top_k x width``."""
    return sum(
        tokens * int(op.attributes["top_k"]) * block.elements(block.tensors[op.inputs[0]])
        for op in block.ops
        if op.kind == "experts"
    )


def _both(size: int) -> Passes:
    return Passes(forward=size, backward=size)


def _boundaries(graph: ModelGraph, layout: Layout, job: Job, width: Widths) -> Counter[GroupKey]:
    """Between chunks on neighbouring stages every receiver gets its own part of the stream.

    Chunks go around the stages as often as there are virtual stages; activations one way,
    gradients the other.
    """
    total: Counter[GroupKey] = Counter()
    instances = stage_ranks(rank_table(layout))
    for p, pipeline in enumerate(layout.pipelines):
        depth = len(pipeline.stages)
        for chunk in range(depth * layout.schedule.virtual_stages - 1):
            here, there = chunk % depth, (chunk + 1) % depth
            if here == there:
                continue
            size = _boundary_bytes(graph, job, pipeline, chunk, width)
            for copy in range(pipeline.count):
                both = (*instances[p, copy, here], *instances[p, copy, there])
                total["pp", tuple(sorted(r.rank for r in both))] += size
    return total


def _boundary_bytes(
    graph: ModelGraph, job: Job, pipeline: Pipeline, chunk: int, width: Widths
) -> int:
    """``microbatches x samples x tokens x width``, times tp on a side without sequence parallel."""
    depth = len(pipeline.stages)
    sides = (pipeline.stages[c % depth] for c in (chunk, chunk + 1))
    copies = sum(1 if s.option.sequence_parallel else s.option.tp for s in sides)
    _, stop = pipeline.stages[chunk % depth].chunks[chunk // depth]
    block = graph.blocks[graph.layers[stop - 1] if stop else graph.prologue[-1]]
    elements = sequence_tokens(graph, block, job) * block.elements(block.tensors[block.output])
    return pipeline.microbatches * pipeline.samples * elements * copies * width.activation


def _gradient_bytes(group: GradientGroup, width: Widths) -> int:
    """All-reduce of the gradients, or with ZeRO reduce-scatters of them and gathers of weights.

    ZeRO 1: one scatter, one gather of the new weights. ZeRO 2: a scatter after every micro-batch,
    as no rank keeps whole gradients. ZeRO 3: also a gather before every forward and every
    backward, instead of the one at the end. Flat buffers are padded to even parts.
    """
    count = len(group.ranks)
    if count == 1:
        return 0
    if group.zero == 0:
        return count * group.elements * width.gradient
    scatters = 1 if group.zero == 1 else group.rounds
    gathers = 1 if group.zero < 3 else 2 * group.rounds
    payload = group.shard_elements * count
    return count * payload * (scatters * width.gradient + gathers * width.weight)
