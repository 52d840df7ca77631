"""FlagScale's tuner: a mesh for each pool in the given order, even inside a mesh, a grid."""

from dataclasses import replace

from costmodel.job import RECOMPUTE_MODES
from costmodel.layout.values import Layout
from planner.baselines.baseline import BaselineRule, Setting, best_of
from planner.chains import Candidate, chain_candidate
from planner.instance import Draft, Entry, Instance, fits_roughly
from planner.pricing import with_options
from planner.routes import Route, routes
from planner.targets.layout_rules import even_cuts
from planner.watch import Watch

TRIED = 200
SCORED = 24


def propose(setting: Setting) -> Layout | None:
    """The best of the grid over degrees, micro-batches and one recompute mode for all."""
    instance = setting.instance
    layouts: list[Layout] = []
    for mode in RECOMPUTE_MODES:
        kept = tuple(o for o in instance.space.options if o.recompute == mode)
        if kept:
            part = with_options(instance, kept)
            best = best_of(part, _grid(part, setting.watch))
            layouts += [best] if best is not None else []
    times = [(instance.evaluate(layout).step_time_s, k) for k, layout in enumerate(layouts)]
    return layouts[min(times)[1]] if times else None


def _grid(instance: Instance, watch: Watch) -> list[Draft]:
    order = tuple(range(len(instance.chips)))
    found = [
        candidate
        for route in _equal_batches(instance, routes(instance, [order], watch))[:TRIED]
        if (candidate := chain_candidate(instance, route.parts, route.count)) is not None
    ]
    ranked = sorted(found, key=lambda candidate: candidate.quick_s)[:SCORED]
    even = [_even_inside(instance, candidate) for candidate in ranked]
    return [draft for draft in even if fits_roughly(instance, draft)]


def _equal_batches(instance: Instance, found: list[Route]) -> list[Route]:
    """Those whose copies run equally many micro-batches."""
    return [r for r in found if instance.batch // r.parts[0][0].samples % r.count == 0]


def _even_inside(instance: Instance, candidate: Candidate) -> Draft:
    """Layers of each pool as balanced, dealt evenly to its stages."""
    [entry] = candidate.draft
    rows, cuts = entry.template.rows, entry.template.cuts
    pools = [int(instance.table.pool_index[row]) for row in rows]
    even, begin = [0], 0
    for stop in range(1, len(rows) + 1):
        if stop == len(rows) or pools[stop] != pools[begin]:
            inside = even_cuts(cuts[stop] - cuts[begin], stop - begin)
            even += [cuts[begin] + cut for cut in inside[1:]]
            begin = stop
    return (_recut(entry, tuple(even)),)


def _recut(entry: Entry, cuts: tuple[int, ...]) -> Entry:
    return replace(entry, template=replace(entry.template, cuts=cuts))


BASELINE = BaselineRule(
    name="flagscale grid",
    sentence="A mesh for each pool that is used, in the given order; layers even inside a mesh, "
    "one recompute mode; the best of the grid.",
    source="github.com/FlagOpen/FlagScale da4935e: runner/auto_tuner",
    order=4,
    propose=propose,
)
