"""Which columns the integer master sees: pipelines inside one pool, for growing sets of pools.

Pipelines of different islands sum their gradients over the slow link between them, which costs
the same however the work is shared; so the sets of islands are grown one by one, fastest first,
where the exact step time falls.
"""

from collections.abc import Iterator

from planner.chains import chain_parts, counts_for, template_for
from planner.degrees import Degrees, best_of_pool, sample_sizes
from planner.instance import Draft, Instance, Template, layout_of, pipelines_of
from planner.mixes import Column, column, mix
from planner.watch import Watch

WIDTH = 4


def mixed_layouts(instance: Instance, watch: Watch) -> Iterator[Draft]:
    """Layouts of several pipelines: all pools, then sets of islands grown greedily."""
    islands = sorted(set(instance.islands))
    everything = tuple(range(len(instance.chips)))
    yield from _refined(instance, everything, _mixed(instance, everything))
    if len(islands) > 1:
        yield from _grown(instance, islands, watch)
    for pools in _within_islands(instance):
        if not watch.expired():
            yield from _refined(instance, pools, _mixed(instance, pools))


def _grown(instance: Instance, islands: list[int], watch: Watch) -> Iterator[Draft]:
    """The best mix of one island, then with the next fastest one, and so on where it helps."""
    alone = [(i, _scored_mix(instance, (i,))) for i in islands if not watch.expired()]
    order = sorted(
        ((mixed[0], i, mixed[1]) for i, mixed in alone if mixed is not None),
        key=lambda entry: entry[:2],
    )
    if not order:
        return
    best_s, first, draft = order[0]
    yield from _refined(instance, _pools_in(instance, (first,)), draft)
    chosen: tuple[int, ...] = (first,)
    for island in (i for _, i, _ in order[1:]):
        mixed = None if watch.expired() else _scored_mix(instance, (*chosen, island))
        if mixed is not None and mixed[0] < best_s:
            chosen, best_s = (*chosen, island), mixed[0]
            yield from _refined(instance, _pools_in(instance, chosen), mixed[1])


def _scored_mix(instance: Instance, islands: tuple[int, ...]) -> tuple[float, Draft] | None:
    draft = _mixed(instance, _pools_in(instance, islands))
    if draft is None:
        return None
    return instance.evaluate(layout_of(instance, draft)).step_time_s, draft


def _pools_in(instance: Instance, islands: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(k for k, island in enumerate(instance.islands) if island in islands)


def _within_islands(instance: Instance) -> tuple[tuple[int, ...], ...]:
    """Single pools of islands that have several: their pools may differ too much to mix."""
    shared = {i for i in instance.islands if instance.islands.count(i) > 1}
    return tuple((k,) for k, island in enumerate(instance.islands) if island in shared)


def _refined(instance: Instance, pools: tuple[int, ...], draft: Draft | None) -> Iterator[Draft]:
    """The draft, and a second one whose pipelines count on sharing their state with as many.

    All pipelines of a mix hold all layers, so once their number is known ZeRO leaves less on a
    chip, and shallower pipelines fit.
    """
    if draft is None:
        return
    yield draft
    second = _mixed(instance, pools, sharing=pipelines_of(draft))
    if second is not None:
        yield second


def _mixed(instance: Instance, pools: tuple[int, ...], sharing: int = 1) -> Draft | None:
    return mix(instance, _columns(instance, pools, sharing))


def _columns(instance: Instance, pools: tuple[int, ...], sharing: int) -> tuple[Column, ...]:
    """Balanced pipelines of one pool each, at every depth that its chips allow.

    sharing: pipelines that certainly share every layer.
    """
    found: dict[Template, None] = {}
    for samples in sample_sizes(instance):
        for pool in pools:
            for chosen in best_of_pool(instance, pool, samples, WIDTH):
                for template in _depths(instance, chosen, pools, sharing):
                    found[template] = None
    return tuple(column(instance, template) for template in found)


def _depths(
    instance: Instance, chosen: Degrees, pools: tuple[int, ...], sharing: int
) -> Iterator[Template]:
    """The pipeline over these degrees at every depth worth having, with memory for its copies.

    The copies of its own pool share its weights at least; its micro-batches are as many as if all
    pools ran such copies.
    """
    for count in counts_for(instance, (chosen,)):
        parts = chain_parts(instance, (chosen,), count)
        total = sum(instance.chips[k] for k in pools)
        copies = max(1, count * total // max(1, instance.chips[chosen.pool]))
        microbatches = max(1, instance.batch // (chosen.samples * copies))
        template = template_for(
            instance, parts, microbatches=microbatches, pipelines=max(count, sharing), lean=True
        )
        if template is not None:
            yield template
