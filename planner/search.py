"""The search: candidates of every family, exact scores, local improvement, and proof when small."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from planner.chains import Candidate, Outline, chain_layouts, outlines, pool_orders
from planner.degrees import slowest_pool
from planner.exact import prove
from planner.improvement import improve
from planner.instance import Draft, Instance, Score, layout_of, shapes_of
from planner.masters import mixed_layouts
from planner.uniform import best_uniform
from planner.watch import Watch

UNIFORM = "uniform"
BALANCED = 240
SCORED = 40
SCORED_PER_SUBSET = 3
IMPROVED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A layout with its exact score; ``family`` names where it came from."""

    draft: Draft
    score: Score
    family: str

    @property
    def rank(self) -> tuple[float, float]:
        """Order of preference: faster first; layouts that do not fit by what they miss."""
        return self.score.step_time_s, self.score.missing_bytes

    @property
    def fits(self) -> bool:
        """Whether it can run."""
        return self.score.step_time_s < float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Result of a search: layouts best first, those that do not fit last, effort and proof.

    outside: a uniform layout with more pipeline shapes than the space allows; for comparison only.
    """

    ranked: tuple[Scored, ...]
    evaluated: int
    optimal: bool
    cut_off: bool
    outside: tuple[Scored, ...] = ()

    @property
    def best(self) -> Scored | None:
        """The fastest layout that fits."""
        return next((s for s in self.ranked if s.fits), None)


def search(instance: Instance, watch: Watch) -> Found:
    """The best layouts of the space that the heuristics find, or the proven optimum when small.

    The clock is asked between layouts; once it is over the rest is left out and ``cut_off`` says
    so.
    """
    found = _heuristic(instance, watch)
    for zero in (2, 3):
        if found.best is None and not watch.expired():
            found = _heuristic(replace(instance, largest_zero=zero), watch)
    return _proved(instance, found, watch)


def _heuristic(instance: Instance, watch: Watch) -> Found:
    uniform = _uniform(instance, watch)
    drafts = [*_chains(instance, watch), *_mixes(instance, watch)]
    inside = [s for s in uniform if shapes_of(s.draft) <= instance.space.template_limit]
    ranked = _ranked([*_score_all(instance, drafts, watch), *inside])
    polished, spent = _polish(instance, ranked, watch)
    return Found(
        ranked=tuple(_ranked([*polished, *ranked])),
        evaluated=len(ranked) + spent,
        optimal=False,
        cut_off=watch.expired(),
        outside=tuple(s for s in uniform if s not in inside),
    )


def _uniform(instance: Instance, watch: Watch) -> list[Scored]:
    """The baseline that everything has to beat; there from the start, so that a plan exists."""
    found = best_uniform(instance)
    if found is None:
        return []
    draft, score = found
    if shapes_of(draft) <= instance.space.template_limit:
        watch.saw(score.step_time_s)
    return [Scored(draft=draft, score=score, family=UNIFORM)]


def _chains(instance: Instance, watch: Watch) -> Iterator[tuple[str, Draft]]:
    """The most promising chains: of all, and of every subset of pools that a baseline asks for."""
    longest = 3 if len(instance.chips) <= 4 else 2
    sketches = outlines(
        instance, tuple(pool_orders(instance, longest)), width=6 if len(instance.chips) > 2 else 12
    )
    slowest = slowest_pool(instance)
    subsets: list[tuple[list[Outline], int]] = [(sketches, BALANCED)]
    if len(instance.chips) > 1:
        singles = [
            [s for s in sketches if s.pools == frozenset((k,))] for k in range(len(instance.chips))
        ]
        without = [s for s in sketches if slowest not in s.pools]
        subsets += [(subset, BALANCED // 8) for subset in (*singles, without)]
    chosen: dict[Draft, None] = {}
    for number, (subset, enough) in enumerate(subsets):
        found: list[Candidate] = []
        for candidate in chain_layouts(instance, subset, enough=enough, tries=8 * enough):
            found.append(candidate)
            if watch.expired():
                break
        found.sort(key=lambda c: c.quick_s)
        kept = SCORED if number == 0 else SCORED_PER_SUBSET
        chosen |= {c.draft: None for c in found[:kept]}
    yield from (("chain", draft) for draft in chosen)


def _mixes(instance: Instance, watch: Watch) -> Iterator[tuple[str, Draft]]:
    if watch.expired():
        return
    for draft in mixed_layouts(instance, watch):
        yield "mix", draft


def _score_all(
    instance: Instance, drafts: Iterable[tuple[str, Draft]], watch: Watch
) -> list[Scored]:
    scored: list[Scored] = []
    for family, draft in drafts:
        score = instance.evaluate(layout_of(instance, draft))
        watch.saw(score.step_time_s)
        scored.append(Scored(draft=draft, score=score, family=family))
        if watch.expired() and any(s.fits for s in scored):
            break
    return scored


def _ranked(scored: Iterable[Scored]) -> list[Scored]:
    """Distinct drafts, best first."""
    return sorted({s.draft: s for s in scored}.values(), key=lambda s: s.rank)


def _polish(instance: Instance, ranked: list[Scored], watch: Watch) -> tuple[list[Scored], int]:
    """The best few layouts after local search, and the evaluations spent."""
    polished: list[Scored] = []
    spent = 0
    for start in ranked[:IMPROVED]:
        if watch.expired() or not start.fits:
            break
        draft, score, evaluations = improve(instance, start.draft, start.score, watch)
        spent += evaluations
        polished.append(replace(start, draft=draft, score=score))
    return polished, spent


def _proved(instance: Instance, found: Found, watch: Watch) -> Found:
    """The result after the enumeration of a small problem; unchanged when it is too large."""
    best = found.best
    proof = prove(
        instance,
        best.draft if best else None,
        best.score.step_time_s if best else float("inf"),
    )
    ranked = found.ranked
    if proof.draft is not None and (best is None or proof.draft != best.draft):
        score = instance.evaluate(layout_of(instance, proof.draft))
        watch.saw(score.step_time_s)
        ranked = (Scored(draft=proof.draft, score=score, family="enumeration"), *ranked)
    return replace(
        found,
        ranked=ranked,
        evaluated=found.evaluated + proof.evaluated,
        optimal=proof.complete,
        cut_off=found.cut_off and not proof.complete,
    )
