"""Which columns the integer master sees: pipelines inside one pool, for growing sets of pools.

Pipelines of different islands sum their gradients over the slow link between them, which costs
the same however the work is shared; so the sets of islands are grown one by one, fastest first,
where the exact step time falls.
"""

from collections.abc import Iterator

from planner.bound import work_bound
from planner.chains import template_for
from planner.degrees import Degrees, best_of_pool, sample_sizes
from planner.instance import Draft, Instance, Template, layout_of, pipelines_of
from planner.lighter import lightened
from planner.mixes import Column, column, mix
from planner.watch import Watch

WIDTH = 4
MOST_DEGREES = 64
NEAR, CLOSE = 1.15, 1.05
"""How near the best step known a mix has to be to be refined, and to be made lighter."""

DEPTHS = (*range(1, 17), 18, 20, 22, 24, 27, 30, 32, 36, 40, 44, 48, 54, 60, 64)
"""Numbers of stages that are tried in one pool."""


def mixed_layouts(instance: Instance, watch: Watch) -> Iterator[Draft]:
    """Layouts of several pipelines: all pools, then sets of islands grown greedily.

    Sets of pools that cannot do the work within the best step known are passed over.
    """
    islands = sorted(set(instance.islands))
    everything = tuple(range(len(instance.chips)))
    if len(islands) == 1:
        yield from _refined(instance, everything, _mixed(instance, everything))
    else:
        yield from _grown(instance, islands, watch)
    for pools in _within_islands(instance):
        if not watch.expired() and _promising(instance, pools, watch):
            yield from _refined(instance, pools, _mixed(instance, pools))


def _promising(instance: Instance, pools: tuple[int, ...], watch: Watch) -> bool:
    return work_bound(instance, pools) + instance.floor < watch.best_s


def _grown(instance: Instance, islands: list[int], watch: Watch) -> Iterator[Draft]:
    """Islands join, fastest first, where the best mix over them gets faster.

    Those that come first are too small to matter until they could do the work in time.
    """
    order = sorted(islands, key=lambda i: (work_bound(instance, _pools_in(instance, (i,))), i))
    chosen: tuple[int, ...] = ()
    best: tuple[float, Draft] | None = None
    for island in order:
        grown = (*chosen, island)
        if not _promising(instance, _pools_in(instance, grown), watch):
            chosen = grown
            continue
        mixed = None if watch.expired() else _scored_mix(instance, grown)
        if mixed is not None and (best is None or mixed[0] < best[0]):
            chosen, best = grown, mixed
            yield mixed[1]
    if best is not None and best[0] < NEAR * watch.best_s and not watch.expired():
        yield from _finished(instance, _pools_in(instance, chosen), best, watch)


def _finished(
    instance: Instance, pools: tuple[int, ...], mixed: tuple[float, Draft], watch: Watch
) -> Iterator[Draft]:
    """A mix that counts on sharing its state, and lighter stages when it is close to the best."""
    columns = _columns(instance, pools, pipelines_of(mixed[1]))
    draft = mix(instance, columns)
    if draft is None:
        return
    yield draft
    seconds = instance.evaluate(layout_of(instance, draft)).step_time_s
    if seconds < CLOSE * watch.best_s and not watch.expired():
        yield from lightened(instance, draft, columns)


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
            for chosen in _single_copies(instance, pool, samples)[:WIDTH]:
                for template in _depths(instance, chosen, pools, sharing):
                    found[template] = None
    return tuple(column(instance, template) for template in found)


def _single_copies(instance: Instance, pool: int, samples: int) -> tuple[Degrees, ...]:
    """Degrees without copies inside the stage: more pipelines do the same, and divide finer."""
    every = best_of_pool(instance, pool, samples, MOST_DEGREES)
    return tuple(d for d in every if d.replicas == 1)


def _depths(
    instance: Instance, chosen: Degrees, pools: tuple[int, ...], sharing: int
) -> Iterator[Template]:
    """The pipeline over these degrees at every depth worth having, with memory for its copies.

    The copies of its own pool share its weights at least; its micro-batches are as many as if all
    pools ran such copies.
    """
    groups = instance.chips[chosen.pool] // chosen.num_chips
    for depth in DEPTHS:
        count = groups // depth
        if count == 0:
            return
        parts = ((chosen, depth),)
        total = sum(instance.chips[k] for k in pools)
        copies = max(1, count * total // max(1, instance.chips[chosen.pool]))
        microbatches = max(1, instance.batch // (chosen.samples * copies))
        template = template_for(
            instance, parts, microbatches=microbatches, pipelines=max(count, sharing), lean=True
        )
        if template is not None:
            yield template
