"""Builds the offers of a box: every option's times and sizes, each no more than they can be.

A *box* is a range of the number of pipelines D. More pipelines shard more state (the most decides
memory) and send more bytes (the least decides traffic).
"""

from dataclasses import dataclass, replace

import numpy as np

from costmodel.job import Job
from costmodel.layout.values import StageOption
from costmodel.memory import Shards, static_bytes
from costmodel.model.placement import Collective
from costmodel.problem import Problem
from planner.arrays import Arrays, FloatArray, IntArray
from planner.certificate.floors import Group, seconds_per_byte
from planner.certificate.relaxed import (
    SLACK,
    Offer,
    Sizes,
    beaten,
    most_layers,
    options_of,
)
from planner.instance import Instance, arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Layouts of at least ``least`` and at most ``most`` pipelines."""

    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """An offer and what its rows are.

    samples: sequences per micro-batch. rows: table rows. kind: type of their chips; chips: of a
    stage; backward: prefix sums with what ZeRO adds, first_backward, last_backward its ends.
    """

    samples: int
    offer: Offer
    rows: IntArray
    kind: IntArray
    chips: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """All offers of a box. kinds: type of every pool; chips: of every type."""

    offers: tuple[Priced, ...]
    kinds: tuple[int, ...]
    chips: FloatArray
    deepest: int
    layers: int


def relaxation(problem: Problem, instance: Instance, box: Box) -> Relaxation:
    """The offers of a box; options that others of their type beat are left out."""
    layers = like_layers(instance)
    deepest = min(instance.space.max_stages, len(layers))
    every = _every_option(problem, instance, box, layers, deepest)
    kinds = _kinds(instance, every)
    first = [kinds.index(kind) for kind in kinds]
    table, found = instance.table, list[Priced]()
    alone = np.array([first[k] == k for k in table.pool_index.tolist()], np.bool_)
    for samples in _sample_sizes(instance):
        rows = np.flatnonzero((table.samples == samples) & alone)
        priced = _offer(instance, every, rows, np.array(kinds, np.int64))
        if priced is not None:
            found.append(priced)
    chips = np.zeros(max(kinds) + 1)
    np.add.at(chips, list(kinds), np.array(instance.chips, dtype=np.float64))
    return Relaxation(
        offers=tuple(found), kinds=kinds, chips=chips, deepest=deepest, layers=len(layers)
    )


def _sample_sizes(instance: Instance) -> list[int]:
    """Sequences per micro-batch that templates are priced with.

    A pipeline whose stages all have two replicas or more is the same as two pipelines with half of
    them, where the space has both (lemma 5): sizes that only such pipelines have are left out.
    """
    options = instance.table.options
    known, largest = set(options), max(o.micro_batch_size for o in options)
    halved = (replace(o, replicas=o.replicas // 2) for o in options if o.replicas > 1)
    splits = all(o.ep * o.etp == 1 and o.replicas.bit_count() == 1 for o in options)
    every = sorted(set(instance.table.samples.tolist()))
    if splits and all(o in known for o in halved):
        return [samples for samples in every if samples <= largest]
    return every


def like_layers(instance: Instance) -> IntArray:
    """The largest set of layers that are alike under every option, by work."""
    table = instance.table.layers
    names = ("forward_s", "backward_s", "dense_parameters", "expert_parameters", "activation_bytes")
    each = np.concatenate([np.diff(getattr(table, name), axis=1) for name in names])
    each = np.concatenate([each, instance.table.transient_bytes])
    scale = np.abs(each).max(axis=1, keepdims=True)
    alike = np.round(each / np.where(scale > 0, scale, 1.0), 9)
    kind = np.unique(alike, axis=1, return_inverse=True)[1].ravel()
    work = np.diff(table.forward_s + table.backward_s, axis=1).min(axis=0)
    most = np.argmax(np.bincount(kind, weights=work))
    return np.flatnonzero(kind == most)


def _every_option(
    problem: Problem, instance: Instance, box: Box, layers: IntArray, deepest: int
) -> Offer:
    """All options of the table as one offer."""
    x = _arrays(problem, instance, box)
    tail = _tails(problem, instance, box, layers)
    forward, backward = (_least(part, layers) for part in (x.forward, x.backward))
    sizes = _sizes(instance, x, layers)
    j = np.arange(deepest + 1)
    rooms = {
        name: most_layers(sizes, j, len(layers), first=first, last=last)
        for name, first, last in (
            ("inner", False, False),
            ("first", True, False),
            ("last", False, True),
            ("alone", True, True),
        )
    }
    return Offer(
        work=forward + backward,
        forward=forward,
        first_work=x.first_forward + x.first_backward,
        first_forward=x.first_forward,
        last_work=x.last_forward + x.last_backward,
        last_forward=x.last_forward,
        hand_over=_hand_overs(instance),
        tail=tail,
        **rooms,
    )


def _least(prefix: FloatArray, layers: IntArray) -> FloatArray:
    """The least of these layers of prefix sums, (O,); they are alike up to rounding."""
    return np.diff(prefix, axis=1)[:, layers].min(axis=1)


def _sizes(instance: Instance, x: Arrays, layers: IntArray) -> Sizes:
    dense, expert = _least(x.dense, layers), _least(x.expert, layers)
    return Sizes(
        layer=dense * x.dense_bytes + expert * x.expert_bytes,
        kept=_least(x.kept, layers),
        first=x.first_dense * x.dense_bytes + x.first_expert * x.expert_bytes,
        first_kept=x.first_kept,
        last=x.last_dense * x.dense_bytes + x.last_expert * x.expert_bytes,
        last_kept=x.last_kept,
        shared=_shared(instance) * x.dense_bytes,
        transient=x.transient[:, layers].min(axis=1),
        first_transient=x.first_transient,
        last_transient=x.last_transient,
        room=x.budget,
    )


def _offer(instance: Instance, every: Offer, rows: IntArray, kinds: IntArray) -> Priced | None:
    """The offer of these rows, which have the same sequences per micro-batch."""
    offer = options_of(every, rows)
    chips = np.asarray(instance.table.num_chips[rows], np.int64)
    kind = kinds[instance.table.pool_index[rows]]
    backward = offer.work - offer.forward
    costs = np.column_stack([
        chips, offer.forward, backward, offer.first_forward, offer.first_work - offer.first_forward,
        offer.last_forward, offer.last_work - offer.last_forward, offer.hand_over, offer.tail,
    ])  # fmt: skip
    rooms = np.column_stack([offer.inner, offer.first, offer.last, offer.alone])
    lost = beaten(kind, costs.astype(np.float64), rooms)
    kept = np.flatnonzero((lost == 0) & (offer.inner[:, 1] > 0))
    if not len(kept):
        return None
    return Priced(
        samples=int(instance.table.samples[rows[0]]),
        rows=rows[kept],
        kind=kind[kept],
        chips=chips[kept],
        offer=options_of(offer, kept),
    )


def _shared(instance: Instance) -> FloatArray:
    table = instance.table
    return table.tied_parameters + table.mtp_embedding_parameters


def _hand_overs(instance: Instance) -> FloatArray:
    """Least seconds from each row's stage to any next one, both directions, (O,)."""
    table = instance.table
    keys = list(
        zip(
            table.samples.tolist(),
            table.pool_index.tolist(),
            table.num_chips.tolist(),
            table.boundary_bytes.tolist(),
            strict=True,
        )
    )
    each = {key: table.options[row] for row, key in enumerate(keys)}
    least = {
        key: min(
            sum(instance.transfer(sender, receiver))
            for other, receiver in each.items()
            if other[0] == key[0]
        )
        for key, sender in each.items()
    }
    return np.array([least[key] for key in keys]) * (1 - SLACK)


def _ranks(option: StageOption) -> tuple[int, int]:
    return option.replicas * option.cp, option.num_chips // (option.ep * option.etp)


def _arrays(problem: Problem, instance: Instance, box: Box) -> Arrays:
    """Search arrays with the largest shard counts of the box and the least traffic of ZeRO."""
    table, total = instance.table, sum(instance.chips)
    ranks = np.array([_ranks(option) for option in table.options])
    widest = np.minimum(total, box.most * ranks.max(axis=0)).astype(np.float64)
    zero = np.array([float(o.zero) for o in table.options])
    dense, expert = _bytes(instance.job, widest, zero)
    x = arrays(instance, 1)._replace(dense_bytes=dense, expert_bytes=expert)
    return _with_sharding(problem, instance, box, x) if zero.max(initial=0) >= 2 else x


def _bytes(job: Job, widest: FloatArray, zero: FloatArray) -> tuple[FloatArray, FloatArray]:
    one, none = np.ones_like(zero), np.zeros_like(zero)
    shards = Shards(dense=np.asarray(widest[0]), expert=np.asarray(widest[1]))
    both = (static_bytes(*pair, shards, zero, job) for pair in ((one, none), (none, one)))
    dense, expert = (parts.weights + parts.gradients + parts.optimizer for parts in both)
    return dense, expert


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rates:
    """Least seconds per dense and expert parameter of reducing and gathering, (O,) each."""

    reduce_dense: FloatArray
    reduce_expert: FloatArray
    gather_dense: FloatArray
    gather_expert: FloatArray


def _rates(problem: Problem, instance: Instance, box: Box) -> _Rates:
    job, slow = problem.job, problem.efficiency.sync_traffic
    halves = (
        (Collective.REDUCE_SCATTER, job.gradient_bytes),
        (Collective.ALL_GATHER, job.weight_bytes),
    )
    found = [
        [slow * size * rate for half, size in halves for rate in _floors(problem, o, box, half)]
        for o in instance.table.options
    ]
    down_dense, down_expert, up_dense, up_expert = np.array(found).T * (1 - SLACK)
    sharded = np.array([o.zero > 0 for o in instance.table.options])
    return _Rates(
        reduce_dense=down_dense,
        reduce_expert=down_expert,
        gather_dense=up_dense * sharded,
        gather_expert=up_expert * sharded,
    )


def _floors(
    problem: Problem, option: StageOption, box: Box, half: Collective
) -> tuple[float, float]:
    dense, expert = _ranks(option)
    strides = option.tp, option.ep * option.etp
    both = (
        Group(ranks=ranks, stride=stride, pipelines=box.least)
        for ranks, stride in zip((dense, expert), strides, strict=True)
    )
    first, second = (seconds_per_byte(problem.cluster, option.pool, g, half) for g in both)
    return first, second


def _with_sharding(problem: Problem, instance: Instance, box: Box, x: Arrays) -> Arrays:
    """Adds what ZeRO 2 and 3 move in every micro-batch (``docs/theory/certificate.md``, 2)."""
    rates, options = _rates(problem, instance, box), instance.table.options
    two = np.array([o.zero >= 2 for o in options])
    three = np.array([o.zero >= 3 for o in options])
    parts = {
        "": (x.dense, x.expert),
        "first_": (x.first_dense, x.first_expert),
        "last_": (x.last_dense, x.last_expert),
    }

    def traffic(dense: FloatArray, expert: FloatArray, *, back: bool) -> FloatArray:
        shape = (-1, 1) if dense.ndim == 2 else (-1,)
        gather = dense * rates.gather_dense.reshape(shape) + expert * rates.gather_expert.reshape(
            shape
        )
        down = dense * rates.reduce_dense.reshape(shape) + expert * rates.reduce_expert.reshape(
            shape
        )
        gathered = np.where(three.reshape(shape), gather, 0.0)
        return gathered + np.where(two.reshape(shape), down, 0.0) if back else gathered

    changed: dict[str, FloatArray] = {}
    for name, back in (("forward", False), ("backward", True)):
        seconds = {part: traffic(*held, back=back) for part, held in parts.items()}
        own = getattr(x, name)
        hidden = problem.efficiency.sharded_weights_overlap
        slower = (seconds[""][:, -1] > hidden * own[:, -1]).astype(np.float64)
        for part, t in seconds.items():
            base = getattr(x, part + name)
            over = slower[:, None] if base.ndim == 2 else slower
            extra = over * (t - hidden * base) + problem.efficiency.sharded_weights_exposed * t
            changed[part + name] = base + extra
    return x._replace(**changed)


def _tails(problem: Problem, instance: Instance, box: Box, layers: IntArray) -> FloatArray:
    """Least seconds after the last backward of a first stage with n layers, (O, L + 1).

    At n = L it holds the head as well.
    """
    efficiency = problem.efficiency
    rates, x = _rates(problem, instance, box), arrays(instance, 1)
    zero = np.array([o.zero for o in instance.table.options])[:, None]
    counts = np.arange(len(layers) + 1.0)[None, :]

    def held(name: str, *, least: bool = True) -> FloatArray:
        """Of a first stage with n layers; at the end with the head."""
        each = np.diff(getattr(x, name), axis=1)[:, layers]
        one = each.min(axis=1) if least else each.max(axis=1)
        total = one[:, None] * counts + getattr(x, f"first_{name}")[:, None]
        total[:, -1] += getattr(x, f"last_{name}")
        return total

    dense, expert = held("dense"), held("expert")
    dense[:, -1] -= _shared(instance)
    forward, backward = held("forward", least=False), held("backward", least=False)
    down = dense * rates.reduce_dense[:, None] + expert * rates.reduce_expert[:, None]
    up = dense * rates.gather_dense[:, None] + expert * rates.gather_expert[:, None]
    share, always = efficiency.sync_overlap, efficiency.sync_exposed
    reduced = np.where(zero < 2, np.maximum(always * down, down - share * backward), 0.0)
    gathered = np.where(zero < 3, np.maximum(always * up, up - share * forward), 0.0)
    return (np.maximum(reduced, 0.0) + np.maximum(gathered, 0.0)) * (1 - SLACK)


def _kinds(instance: Instance, every: Offer) -> tuple[int, ...]:
    """Type of every pool: pools of one type offer the same options at the same costs."""
    table, seen = instance.table, list[tuple[object, ...]]()
    kinds: list[int] = []
    for pool in range(len(instance.chips)):
        rows = np.flatnonzero(table.pool_index == pool)
        options = tuple(_without_pool(table.options[row]) for row in rows)
        key = (options, *(part[rows].tobytes() for part in every))
        if key not in seen:
            seen.append(key)
        kinds.append(seen.index(key))
    return tuple(kinds)


def _without_pool(option: StageOption) -> tuple[object, ...]:
    names = ("tp", "cp", "ep", "etp", "replicas", "micro_batch_size", "zero", "recompute")
    return tuple(getattr(option, name) for name in names)
