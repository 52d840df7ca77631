"""Which columns the integer master sees: pool-local pipelines and short chains."""

from collections.abc import Iterator

from planner.chains import chain_parts, counts_for, template_for
from planner.degrees import Degrees, best_of_pool, sample_sizes
from planner.instance import Draft, Instance, Template
from planner.mixes import column, mix
from planner.watch import Watch

WIDTH = 4


def mixed_layouts(instance: Instance, watch: Watch) -> Iterator[Draft]:
    """Layouts of several pipelines, for each set of pools worth combining."""
    for pools in _pool_sets(instance):
        if watch.expired():
            return
        templates = _pool_templates(instance, pools)
        draft = mix(instance, tuple(column(instance, t) for t in templates))
        if draft is not None:
            yield draft


def _pool_sets(instance: Instance) -> tuple[tuple[int, ...], ...]:
    """All pools; the pools of each island; all pools but one."""
    everything = tuple(range(len(instance.chips)))
    islands = {
        tuple(k for k in everything if instance.islands[k] == island)
        for island in set(instance.islands)
    }
    without = {tuple(k for k in everything if k != gone) for gone in everything}
    rest = sorted((islands | without) - {everything, ()})
    return (everything, *rest)


def _pool_templates(instance: Instance, pools: tuple[int, ...]) -> tuple[Template, ...]:
    """Balanced pipelines of one pool each, at every depth that its chips allow."""
    found: dict[Template, None] = {}
    for samples in sample_sizes(instance):
        for pool in pools:
            for chosen in best_of_pool(instance, pool, samples, WIDTH):
                for template in _depths(instance, chosen, pools):
                    found[template] = None
    return tuple(found)


def _depths(instance: Instance, chosen: Degrees, pools: tuple[int, ...]) -> Iterator[Template]:
    """The pipeline over these degrees at every depth worth having, with memory for its copies."""
    for count in counts_for(instance, (chosen,)):
        parts = chain_parts(instance, (chosen,), count)
        total = sum(instance.chips[k] for k in pools)
        copies = max(1, count * total // max(1, instance.chips[chosen.pool]))
        microbatches = max(1, instance.batch // (chosen.samples * copies))
        template = template_for(instance, parts, microbatches=microbatches, pipelines=count)
        if template is not None:
            yield template
