"""Searches the space of one target, or of all maintained ones, on one table of prices."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from costmodel.problem import Problem
from planner.chain_meshes import renumbered, search_chain_meshes
from planner.chains import by_room
from planner.degrees import slowest_pool
from planner.exact import prove
from planner.family_search import FAMILIES, family_found
from planner.improvement import improve
from planner.instance import Draft, Instance, Score, layout_of, shapes_of
from planner.interleaved_search import NOTHING, interleaved_found, interleaves, only_interleaves
from planner.mesh_search import (
    THOROUGH,
    Effort,
    Result,
    pinned_orders,
    pool_orders,
    search_meshes,
    vendor_groups,
)
from planner.pins import pinned
from planner.placement import place
from planner.pricing import clipped, with_options
from planner.search import Found, Scored, joined, least_s, proof_clock, search
from planner.space import clip
from planner.subclusters import rounded
from planner.targets.registry import ANY, LAUNCHABLE, maintained_targets, target_called
from planner.targets.target import Shape, Target
from planner.values import Alternative
from planner.watch import Watch
from planner.wishes import NO_WISHES, Wishes

MESH, CHAIN = "mesh", "chain"
ONE_MESH = frozenset({"tp", "cp", "ep", "replicas", "micro_batch_size"})
"""What is equal on all stages where there is one device mesh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the search of a target's space gave.

    best: its fastest layout with a place. bound_s: below which no layout of the target's family is,
    as far as its search proved; 0 if nothing. interleaved_s: the same of interleaved layouts.
    """

    target: Target
    instance: Instance
    found: Found
    best: Scored | None
    bound_s: float = 0.0
    interleaved_s: float = float("inf")

    @property
    def step_time_s(self) -> float:
        """Of the best layout; infinite when nothing fits."""
        return self.best.score.step_time_s if self.best else float("inf")


def outcomes(
    problem: Problem,
    everything: Instance,
    target: str,
    watch: Watch,
    wishes: Wishes = NO_WISHES,
) -> list[Outcome]:
    """The searches that a target asks for, the most promising first.

    everything: the instance of the target ``any``, whose table all others share. ``launchable`` is
    every maintained target and, last, ``any`` with the time that is left. The search of a target's
    family goes on for ``wishes.prove_s``.
    """
    pins = wishes.pins
    if target != LAUNCHABLE:
        one = pinned(target_called(target), pins)
        if one.name in FAMILIES:
            return [_of_family(problem, everything, one, watch, wishes.prove_s)]
        return [outcome(problem, everything, one, watch)]
    found = [_shared(problem, everything, pinned(each, pins), watch) for each in _by_promise()]
    rest = Watch(limit_s=max(0.0, watch.limit_s - watch.elapsed_s))
    return [*found, outcome(problem, everything, pinned(target_called(ANY), pins), rest)]


BESIDE_FAMILY = 0.15
"""Of all time, for layouts that a target runs and its family does not hold."""


def _of_family(
    problem: Problem, everything: Instance, target: Target, watch: Watch, prove_s: float
) -> Outcome:
    """The search of a target's family, with its bound, and then of the layouts beside it."""
    instance = clipped(everything, problem, clip(everything.space, problem, target), target)
    if not instance.space.options or only_interleaves(instance):
        return outcome(problem, everything, target, watch)
    kept_s = (BESIDE_FAMILY + _interleaved_share(instance)) * watch.limit_s
    left_s = max(0.0, watch.limit_s - watch.elapsed_s - kept_s) + prove_s
    own = Watch(limit_s=left_s, progress=lambda _, step_s: watch.saw(step_s))
    first, bound_s = family_found(problem, target.name, instance, own)
    beside_s = BESIDE_FAMILY * watch.limit_s
    rest = Watch(limit_s=beside_s, progress=lambda _, step_s: watch.saw(step_s))
    found = joined(_search(problem, instance, target, rest), first)
    before = Outcome(target=target, instance=instance, found=found, best=None, bound_s=bound_s)
    return _interleaved(problem, before, watch)


def _by_promise() -> list[Target]:
    """Maintained targets, those with one set of degrees last: they are seldom the fastest."""
    return sorted(maintained_targets(), key=lambda t: (_one_mesh(t), t.label))


MESH_SHARE, CHAIN_SHARE = 0.2, 0.7
"""Of the time that is left, for one of the targets behind ``launchable``."""

SEARCH_SHARE = 0.75
"""Of all time, for the search of a space without a shape; the rest is for usual parts of it."""


def _shared(problem: Problem, everything: Instance, target: Target, watch: Watch) -> Outcome:
    """One of several searches: it gets a share of the time; what it finds is told to ``watch``."""
    left = max(0.0, watch.limit_s - watch.elapsed_s)
    share = MESH_SHARE if _one_mesh(target) else CHAIN_SHARE
    own = Watch(limit_s=share * left, progress=lambda _, step_s: watch.saw(step_s))
    return outcome(problem, everything, target, own)


def outcome(problem: Problem, everything: Instance, target: Target, watch: Watch) -> Outcome:
    """The search of one target's space, and of that on a rounder part of an odd cluster."""
    instance = clipped(everything, problem, clip(everything.space, problem, target), target)
    early = NOTHING if only_interleaves(instance) else _early(problem, instance, target, watch)
    one_run = replace(watch, limit_s=(1.0 - _interleaved_share(instance)) * watch.limit_s)
    found = NOTHING if only_interleaves(instance) else _one_run(problem, instance, target, one_run)
    found = joined(found, early)
    before = Outcome(target=target, instance=instance, found=found, best=None)
    return _interleaved(problem, before, watch)


INTERLEAVED_SHARE, EARLY_INTERLEAVED, LEAST_INTERLEAVED_S = 0.15, 0.2, 0.5
"""Of all time, for interleaved layouts after others and, where they are looked at early, before
them; seconds that they get in any case."""


def _interleaved_share(instance: Instance) -> float:
    return INTERLEAVED_SHARE if interleaves(instance) else 0.0


def _early(problem: Problem, instance: Instance, target: Target, watch: Watch) -> Found:
    """What is often fastest on large clusters and on those of one pool.

    Interleaved layouts are looked at again later: here they cut nothing off.
    """
    many, found = sum(instance.chips) >= MANY_CHIPS, NOTHING
    if many and _has_meshes(target, watch):
        found = _first_meshes(problem, instance, watch)
    if interleaves(instance) and (many or len(instance.chips) == 1):
        own = Watch(
            limit_s=EARLY_INTERLEAVED * watch.limit_s,
            progress=lambda _, step_s: watch.saw(step_s),
        )
        added, _ = interleaved_found(problem, instance, target, own, least_s(found.ranked))
        found = joined(found, replace(added, cut_off=False))
    return found


def _interleaved(problem: Problem, before: Outcome, watch: Watch) -> Outcome:
    """What was found, with the best interleaved layout if it is faster, and the bound on all.

    More chunks keep more: where nothing else fits, interleaved layouts do not either.
    """
    instance, target = before.instance, before.target
    first = _first_placed(problem, instance, before.found)
    best_s = first.score.step_time_s if first else float("inf")
    left_s = max(LEAST_INTERLEAVED_S, watch.limit_s - watch.elapsed_s)
    own = Watch(limit_s=left_s, progress=lambda _, step_s: watch.saw(step_s))
    added, bound_s = interleaved_found(problem, instance, target, own, best_s)
    if first is None and not only_interleaves(instance):
        added = replace(added, cut_off=False)
    found = joined(before.found, added)
    best = _first_placed(problem, instance, found)
    return replace(before, found=found, best=best, interleaved_s=bound_s)


def _one_run(problem: Problem, instance: Instance, target: Target, watch: Watch) -> Found:
    """The layouts with one run of layers on a stage."""
    found = _whole_space(problem, instance, target, watch)
    rounder = replace(instance, chips=tuple(rounded(chips) for chips in instance.chips))
    if rounder.chips != instance.chips and not found.optimal and not watch.expired():
        found = joined(found, _search(problem, rounder, target, watch))
    return found


FIRST_MESHES, LEAST_MESHES_S, MANY_CHIPS = 0.15, 1.0, 2048
"""Of all time, for chains of meshes in a space without a shape; the least time that is worth it,
and the chips from which they are looked at first, since the other searches take longer there."""


def _has_meshes(target: Target, watch: Watch) -> bool:
    """Whether chains of meshes are looked for beside a space without a shape."""
    return target.name == ANY and FIRST_MESHES * watch.limit_s >= LEAST_MESHES_S


def _whole_space(problem: Problem, instance: Instance, target: Target, watch: Watch) -> Found:
    """The search of the target's space; without a shape, with what the family's search finds."""
    if sum(instance.chips) >= MANY_CHIPS or not _has_meshes(target, watch):
        return _search(problem, instance, target, watch)
    rest = replace(watch, limit_s=(1.0 - FIRST_MESHES) * watch.limit_s)
    found = _search(problem, instance, target, rest)
    return found if found.optimal else joined(found, _first_meshes(problem, instance, watch))


def _first_meshes(problem: Problem, instance: Instance, watch: Watch) -> Found:
    """The chains of meshes that their own search finds first: large clusters are often best so."""
    own = Watch(limit_s=FIRST_MESHES * watch.limit_s, progress=lambda _, step_s: watch.saw(step_s))
    return family_found(problem, "flagscale", instance, own)[0]


def _search(problem: Problem, instance: Instance, target: Target, watch: Watch) -> Found:
    shape = target.shape
    if not instance.space.options:
        return Found(ranked=(), evaluated=0, optimal=False, cut_off=False)
    if _one_mesh(target):
        groups = vendor_groups(problem.cluster, instance.space.pools)
        orders = [order for group in groups for order in _orders(instance, group, shape)]
        return _found(_meshes(instance, orders, watch, shape), MESH, watch)
    if "tp" in shape.equal:
        return _by_tp(instance, watch, shape)
    return _shaped(instance, watch, shape)


def _shaped(instance: Instance, watch: Watch, shape: Shape) -> Found:
    return (_one_shape if shape.one_shape else _whole)(instance, watch, shape)


def _one_shape(instance: Instance, watch: Watch, shape: Shape) -> Found:
    """Chains, and those meshes that are one shape."""
    chains = search_chain_meshes(instance, watch, shape)
    share = Watch(limit_s=MESH_SHARE * watch.limit_s, progress=lambda _, s: watch.saw(s))
    orders = _orders(instance, tuple(range(len(instance.chips))), shape)
    meshes = search_meshes(instance, orders, share, even=False, effort=BRIEF, depths=shape.depths)
    ranked = sorted((*chains, *meshes), key=lambda r: (r[1].step_time_s, r[1].missing_bytes))
    return _found(ranked, CHAIN, watch)


def _orders(instance: Instance, group: tuple[int, ...], shape: Shape) -> list[tuple[int, ...]]:
    """Orders of some of these pools that the shape allows."""
    if not shape.pool_order:
        return pool_orders(instance, group)
    names = instance.space.pools
    asked = [names.index(name) for name in shape.pool_order if name in names]
    return pinned_orders([k for k in asked if k in group])


def _by_tp(instance: Instance, watch: Watch, shape: Shape) -> Found:
    """One tp for all stages: the spaces of every tp one after another, with equal time."""
    values = sorted({option.tp for option in instance.space.options})
    left_s = max(0.0, watch.limit_s - watch.elapsed_s)
    found: list[Found] = []
    for tp in values:
        part = with_options(instance, [o for o in instance.space.options if o.tp == tp])
        own = Watch(limit_s=left_s / len(values), progress=lambda _, s: watch.saw(s))
        one = _shaped(part, own, shape)
        ranked = [replace(s, draft=renumbered(s.draft, part, instance)) for s in one.ranked]
        found.append(replace(one, ranked=tuple(ranked)))
    return Found(
        ranked=tuple(sorted((s for one in found for s in one.ranked), key=lambda s: s.rank)),
        evaluated=sum(one.evaluated for one in found),
        optimal=all(one.optimal for one in found),
        cut_off=any(one.cut_off for one in found),
    )


def _whole(instance: Instance, watch: Watch, shape: Shape) -> Found:
    """The search of a space without a shape, and those of its most usual parts.

    Meshes may share a stage between pools, which neither chains nor mixes do; chains of meshes
    have copies that run equal batches.
    """
    share = replace(watch, limit_s=watch.elapsed_s + MESH_SHARE * watch.limit_s)
    orders = _orders(instance, tuple(range(len(instance.chips))), shape)
    usual = _within(instance, _meshes(instance, orders, share, shape, BRIEF))
    found = search(instance, replace(watch, limit_s=SEARCH_SHARE * watch.limit_s))
    if not found.optimal and not watch.expired():
        usual += _within(instance, search_chain_meshes(instance, watch, shape))
    if not found.optimal and not watch.expired() and len(instance.chips) > 1:
        slowest = slowest_pool(instance)
        left = _orders(instance, tuple(k for k in by_room(instance) if k != slowest), shape)
        usual += _within(instance, _meshes(instance, left, watch, shape, BRIEF))
    free = replace(instance, largest_zero=3)
    polished = [improve(free, draft, score, watch)[:2] for draft, score in usual if _fits(score)]
    added = _found([*usual, *polished], MESH, watch)
    ranked = sorted((*found.ranked, *added.ranked), key=lambda s: s.rank)
    return replace(
        found,
        ranked=tuple(ranked),
        evaluated=found.evaluated + len(added.ranked),
        optimal=found.optimal and least_s(ranked) >= least_s(found.ranked),
        cut_off=not found.optimal and (found.cut_off or added.cut_off),
    )


def _within(instance: Instance, results: Iterable[tuple[Draft, Score]]) -> list[Result]:
    """The best layout with no more shapes than the space allows."""
    limit = instance.space.template_limit
    return [result for result in results if shapes_of(result[0]) <= limit][:1]


BRIEF = Effort(dealt=800, scored=24, improved=1)


def _meshes(
    instance: Instance,
    orders: list[tuple[int, ...]],
    watch: Watch,
    shape: Shape,
    effort: Effort = THOROUGH,
) -> list[tuple[Draft, Score]]:
    """Meshes; with ZeRO 2 and 3, which cost traffic every micro-batch, when nothing else fits."""
    found: list[tuple[Draft, Score]] = []
    for largest in (instance.largest_zero, 3):
        part = replace(instance, largest_zero=largest)
        even, depths = shape.even_split, shape.depths
        found = search_meshes(part, orders, watch, even=even, effort=effort, depths=depths)
        if found and _fits(found[0][1]):
            break
    return found


def _fits(score: Score) -> bool:
    return score.step_time_s < float("inf")


def _one_mesh(target: Target) -> bool:
    return target.shape.equal >= ONE_MESH


def _found(results: Iterable[tuple[Draft, Score]], family: str, watch: Watch) -> Found:
    ranked = [Scored(draft=draft, score=score, family=family) for draft, score in results]
    return Found(
        ranked=tuple(ranked), evaluated=len(ranked), optimal=False, cut_off=watch.expired()
    )


def _first_placed(problem: Problem, instance: Instance, found: Found) -> Scored | None:
    """The fastest layout whose groups pack into the nodes."""
    for scored in found.ranked:
        if not scored.fits:
            return None
        if place(problem.cluster, layout_of(instance, scored.draft)) is not None:
            return scored
    return None


def chosen(tried: list[Outcome]) -> Outcome:
    """The fastest; of several tries ``any`` is for comparison only."""
    launchable = [o for o in tried if o.target.maintained] if len(tried) > 1 else tried
    return min(launchable, key=lambda o: (o.step_time_s, o.target.label))


def proved(tried: list[Outcome], watch: Watch) -> list[Outcome]:
    """The outcomes with the chosen one after an enumeration of its space, where that is small."""
    best = chosen(tried)
    if best.best is None or best.found.optimal:
        return tried
    clock = proof_clock(watch)
    proof = prove(best.instance, best.best.draft, best.step_time_s, clock.expired)
    if not proof.complete or proof.draft is None:
        return tried
    score = best.instance.evaluate(layout_of(best.instance, proof.draft))
    first = Scored(draft=proof.draft, score=score, family="enumeration")
    found = replace(best.found, ranked=(first, *best.found.ranked), optimal=True)
    return [replace(o, found=found, best=first) if o is best else o for o in tried]


def was_cut_off(tried: list[Outcome]) -> bool:
    """Whether the clock ended a search that the plan may come from."""
    return any(o.found.cut_off for o in tried if len(tried) == 1 or o.target.maintained)


def alternatives(tried: list[Outcome], best: Outcome) -> tuple[Alternative, ...]:
    """Step times of the other targets that fit; every layout of theirs is one of ``any``."""
    if len(tried) == 1:
        return ()
    least = min(o.step_time_s for o in tried)
    times = {o.target.label: o.step_time_s for o in tried if o.target.name != best.target.name}
    times[ANY] = least
    return tuple(
        Alternative(target=label, step_time_s=s, relative=s / best.step_time_s - 1.0)
        for label, s in sorted(times.items(), key=lambda pair: (pair[1], pair[0]))
        if s < float("inf")
    )
