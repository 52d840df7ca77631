"""What is legal and still worth a word."""

from collections.abc import Callable, Iterator
from itertools import combinations

from costmodel.holders import segments
from costmodel.layout.packing import idle_share
from costmodel.layout.rule_tools import Place, alternatives, places
from costmodel.layout.values import NO_OFFLOAD, Layout
from costmodel.model.graph import Block
from costmodel.problem import Problem

WarningRule = Callable[[Problem, Layout], Iterator[str]]


def mixed_tp(problem: Problem, layout: Layout) -> Iterator[str]:
    """Several tp degrees: sharded checkpoints of mixed tp have failed to load elsewhere."""
    del problem
    degrees = sorted({place.option.tp for place in places(layout)})
    if len(degrees) > 1:
        yield (
            f"tp differs between stages ({alternatives(degrees)}): the runtime has to reshard "
            "activations and gradients, and its sharded checkpoints must support mixed tp"
        )


def only_mtp(problem: Problem, layout: Layout) -> Iterator[str]:
    """A stage with multi-token prediction and no layer needs support of the runtime."""
    del problem
    for place in places(layout):
        if place.stage.mtp > 0 and place.stage.num_layers == 0:
            yield f"{place.path} holds multi-token prediction and no layer: few runtimes can"


def tp_beyond_scale_up(problem: Problem, layout: Layout) -> Iterator[str]:
    """A tensor-parallel group that leaves its scale-up domain communicates over the network."""
    for place in _first_of_each(layout):
        pool = problem.cluster.pool(place.option.pool)
        if place.option.tp > pool.scale_up_domain:
            yield (
                f"{place.path}/tp {place.option.tp} spans several scale-up domains of "
                f"{pool.scale_up_domain} chips in pool {pool.name}"
            )


def idle_in_nodes(problem: Problem, layout: Layout) -> Iterator[str]:
    """Groups that do not divide a node leave chips of it idle."""
    for place in _first_of_each(layout):
        pool = problem.cluster.pool(place.option.pool)
        idle = idle_share(place.option.tp, pool.scale_up_domain)
        if idle:
            yield (
                f"{place.path}/tp {place.option.tp} leaves {idle} of {pool.scale_up_domain} chips "
                f"of a domain in pool {pool.name} idle or straddles two"
            )


def tower_replicated(problem: Problem, layout: Layout) -> Iterator[str]:
    """Parts beside the main stack whose heads tp does not divide are kept whole on every rank."""
    model = problem.model
    for place in places(layout):
        if not place.stage.embedding:
            continue
        for component in model.components:
            sizes = [_split_sizes(model.blocks[name]) for name, _ in component.blocks]
            odd = sorted({size for found in sizes for size in found if size % place.option.tp})
            if odd:
                yield (
                    f"{place.path}/tp {place.option.tp} does not divide {alternatives(odd)} "
                    f"of {component.name}, which is kept replicated"
                )


def on_host(problem: Problem, layout: Layout) -> Iterator[str]:
    """What a stage keeps in its host's memory: nobody states that memory's size or speed."""
    rate = problem.efficiency.host_copy_bytes_per_s / 1e9
    kept = {
        place.option.pool: place.option.offload
        for place in places(layout)
        if place.option.offload != NO_OFFLOAD
    }
    for pool, what in kept.items():
        held = "optimizer and activations" if what == "both" else what
        yield (
            f"pool {pool} keeps {held} in its hosts' memory: {rate:.0f} GB/s a chip and enough of "
            "it are assumed"
        )


def mixed_vendors(problem: Problem, layout: Layout) -> Iterator[str]:
    """Gradients of a layer on chips of two vendors need a bridging library or the host."""
    named: set[tuple[str, ...]] = set()
    for segment in segments(layout):
        options = [layout.pipelines[d].stages[i].option for d, i in segment.holders]
        vendors = sorted({problem.cluster.pool(o.pool).chip.vendor for o in options})
        for pair in combinations(vendors, 2):
            if pair not in named:
                named.add(pair)
                yield (
                    f"gradients are summed between chips of {pair[0]} and {pair[1]}: that needs a "
                    "communication library for both, or the way over the hosts"
                )


def _first_of_each(layout: Layout) -> Iterator[Place]:
    seen: set[tuple[str, int]] = set()
    for place in places(layout):
        key = place.option.pool, place.option.tp
        if key not in seen:
            seen.add(key)
            yield place


def _split_sizes(block: Block) -> set[int]:
    return {block.dims[dim] for op in block.ops for dim in op.tp_dims if dim != "vocab"}


WARNING_RULES: tuple[WarningRule, ...] = (
    mixed_tp,
    only_mtp,
    tp_beyond_scale_up,
    idle_in_nodes,
    tower_replicated,
    mixed_vendors,
    on_host,
)
