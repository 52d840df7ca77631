"""The best layout with one set of degrees for all stages: cut evenly or anywhere.

Meshes are sketched over orders of pools, quickest first; their layers are dealt out, the pipelines
simulated, the best scored exactly, and layers moved between stages in all copies at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations

from costmodel.hardware.values import Cluster
from planner.chains import by_room
from planner.improvement import moved_layers, shifted_layers
from planner.instance import Draft, Instance, Score, Template, fits_roughly, layout_of, makespan
from planner.meshes import Mesh, balanced_draft, cut_at, meshes
from planner.targets.layout_rules import even_cuts
from planner.watch import Watch

MOST_PERMUTED = 4
"""Pools up to which every order is sketched."""

MAX_MOVES = 120
SLACK = 1.1
"""How much slower than the best simulated pipeline a sketch may seem and still be dealt out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How many sketches that fit are looked at, scored exactly, and improved by moves."""

    dealt: int = 4000
    scored: int = 40
    improved: int = 3


THOROUGH = Effort()
Result = tuple[Draft, Score]


def vendor_groups(cluster: Cluster, pools: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Indices of the pools of each vendor."""
    found: dict[str, list[int]] = {}
    for k, name in enumerate(pools):
        found.setdefault(cluster.pool(name).chip.vendor, []).append(k)
    return tuple(tuple(group) for group in found.values())


def pinned_orders(order: Sequence[int]) -> list[tuple[int, ...]]:
    """Parts of a given order: all of few pools, else without one, beginnings, ends and singles."""
    n = len(order)
    if n <= MOST_PERMUTED:
        return [part for size in range(1, n + 1) for part in combinations(order, size)]
    found = [tuple(order), *(tuple(order[:k]) for k in range(1, n))]
    found += [tuple(order[k:]) for k in range(1, n)]
    found += [tuple(k for k in order if k != gone) for gone in order]
    return list(dict.fromkeys([*found, *((k,) for k in order)]))


def pool_orders(instance: Instance, group: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Orders of some pools: all of few pools; else the roomiest first or last, and without one."""
    if len(group) <= MOST_PERMUTED:
        lengths = range(1, len(group) + 1)
        return [order for n in lengths for order in permutations(group, n)]
    roomy = tuple(k for k in by_room(instance) if k in group)
    found = [roomy, roomy[::-1], *((k,) for k in group)]
    found += [tuple(k for k in roomy if k != gone) for gone in group]
    found += [roomy[:n] for n in range(2, len(roomy))]
    return list(dict.fromkeys(found))


def search_meshes(
    instance: Instance,
    orders: Sequence[tuple[int, ...]],
    watch: Watch,
    *,
    even: bool,
    effort: Effort = THOROUGH,
    depths: frozenset[int] = frozenset(),
) -> list[Result]:
    """Layouts over these orders with their exact scores, best first; those that do not fit last.

    even: layers are dealt evenly, as ``even_cuts`` says. depths: stages of a copy, if not any.
    """
    sketches = (m for m in meshes(instance, orders) if not depths or m.depth in depths)
    drafts = _dealt(instance, sketches, watch, even=even, most=effort.dealt)
    scored: list[Result] = []
    for draft in drafts[: effort.scored]:
        score = instance.evaluate(layout_of(instance, draft))
        watch.saw(score.step_time_s)
        scored.append((draft, score))
        if watch.expired() and watch.best_s < float("inf"):
            break
    scored = sorted(scored, key=_rank)
    if not even:
        scored += [_moved(instance, *result, watch) for result in scored[: effort.improved]]
    return sorted(scored, key=_rank)


def _rank(result: Result) -> tuple[float, float]:
    return result[1].step_time_s, result[1].missing_bytes


def _dealt(
    instance: Instance, sketches: Iterable[Mesh], watch: Watch, *, even: bool, most: int
) -> list[Draft]:
    """At most so many drafts that seem to fit, the quickest pipelines first.

    sketches: the quickest first.
    """
    best_s = float("inf")
    found: list[tuple[float, int, Draft]] = []
    for mesh in sketches:
        late = len(found) == most or (found and watch.expired())
        if late or mesh.quick_s > SLACK * best_s:
            break
        draft = _evenly(instance, mesh) if even else balanced_draft(instance, mesh)
        if draft is not None and instance.allows(layout_of(instance, draft)):
            seconds = pipeline_s(instance, draft)
            best_s = min(best_s, seconds)
            found.append((seconds, len(found), draft))
    return [draft for _, _, draft in sorted(found)]


def _evenly(instance: Instance, mesh: Mesh) -> Draft | None:
    draft = cut_at(mesh, even_cuts(instance.num_layers, mesh.depth))
    return draft if fits_roughly(instance, draft) else None


def pipeline_s(instance: Instance, draft: Draft) -> float:
    """Simulated seconds of the slowest copy."""
    return max(makespan(instance, e.template, e.microbatches) for e in draft)


def _moved(instance: Instance, draft: Draft, score: Score, watch: Watch) -> Result:
    """Hill climbing: one layer from a stage to another in all copies, while it helps."""
    left = MAX_MOVES
    while left > 0 and not watch.expired():
        ranked = sorted(_neighbours(draft), key=lambda d: pipeline_s(instance, d))[:8]
        for candidate in ranked:
            left -= 1
            trial = instance.evaluate(layout_of(instance, candidate))
            if trial.step_time_s < score.step_time_s * (1 - 1e-9):
                draft, score = candidate, trial
                watch.saw(score.step_time_s)
                break
        else:
            break
    return draft, score


def _neighbours(draft: Draft) -> Iterator[Draft]:
    first: Template = draft[0].template
    for other in (*moved_layers(first), *shifted_layers(first)):
        yield tuple(
            replace(e, template=Template(rows=e.template.rows, cuts=other.cuts)) for e in draft
        )
