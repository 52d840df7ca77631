"""The best chain of process meshes: one pipeline shape whose copies run equal batches.

Every stage has degrees and replicas of its own. Recompute modes that may not be mixed by stage are
searched one after the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations

from costmodel.layout.rule_tools import divisors
from planner.chains import Candidate, by_room, chain_candidate, contiguous
from planner.improvement import improve
from planner.instance import Draft, Instance, Score, layout_of
from planner.pricing import with_options
from planner.routes import routes
from planner.targets.target import Shape
from planner.watch import Watch

MODES = (frozenset({"none", "full"}), frozenset({"selective"}))
"""Sets of recompute modes that the stages of one layout may have."""

MOST_PERMUTED = 4
BALANCED = 300
SCORED = 40
IMPROVED = 3

Result = tuple[Draft, Score]


def search_chain_meshes(instance: Instance, watch: Watch, shape: Shape) -> list[Result]:
    """Chains with their exact scores, best first; those that do not fit last.

    shape: may fix the order of pools and the number of stages.
    """
    found: list[Result] = []
    for modes in MODES:
        kept = tuple(o for o in instance.space.options if o.recompute in modes)
        if kept and not (found and watch.expired()):
            part = with_options(instance, kept)
            found += [(renumbered(d, part, instance), s) for d, s in _of_modes(part, watch, shape)]
    return sorted(found, key=_rank)


def renumbered(draft: Draft, part: Instance, whole: Instance) -> Draft:
    """The draft of a part of the options, with the rows that these have in the whole."""
    row_of = {option: row for row, option in enumerate(whole.table.options)}
    rows = [row_of[option] for option in part.table.options]
    return tuple(
        replace(e, template=replace(e.template, rows=tuple(rows[row] for row in e.template.rows)))
        for e in draft
    )


def _rank(result: Result) -> tuple[float, float]:
    return result[1].step_time_s, result[1].missing_bytes


def _of_modes(instance: Instance, watch: Watch, shape: Shape) -> list[Result]:
    candidates = sorted(_candidates(instance, watch, shape), key=lambda c: c.quick_s)
    scored: list[Result] = []
    for candidate in candidates[:SCORED]:
        score = instance.evaluate(layout_of(instance, candidate.draft))
        watch.saw(score.step_time_s)
        scored.append((candidate.draft, score))
        if watch.expired() and watch.best_s < float("inf"):
            break
    scored.sort(key=_rank)
    for draft, score in scored[:IMPROVED]:
        if score.step_time_s < float("inf") and not watch.expired():
            better, reached, _ = improve(instance, draft, score, watch)
            scored.append((better, reached))
    return scored


def _candidates(instance: Instance, watch: Watch, shape: Shape) -> Iterator[Candidate]:
    found = routes(instance, _orders(instance, shape), watch)
    depths = shape.depths
    legal = [r for r in found if not depths or sum(n for _, n in r.parts) in depths]
    for route in legal[:BALANCED]:
        copies = max(
            c for c in divisors(instance.batch // route.parts[0][0].samples) if c <= route.count
        )
        candidate = chain_candidate(instance, route.parts, copies)
        if candidate is not None:
            yield candidate
        if watch.expired():
            return


def _orders(instance: Instance, shape: Shape) -> Sequence[tuple[int, ...]]:
    """All orders of few pools with islands in one piece; else the roomiest first, or last."""
    if shape.pool_order:
        names = instance.space.pools
        return [tuple(names.index(name) for name in shape.pool_order if name in names)]
    pools = range(len(instance.chips))
    if len(pools) <= MOST_PERMUTED:
        every = permutations(pools)
        return [o for o in every if contiguous([instance.islands[k] for k in o])]
    roomy = by_room(instance)
    return [roomy, roomy[::-1]]
