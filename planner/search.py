"""The search: candidates of every family, exact scores, local improvement, and proof when small."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.chain_search import chains, subset_chains
from planner.exact import prove
from planner.improvement import improve
from planner.instance import Draft, Instance, Score, layout_of, shapes_of
from planner.masters import mixed_layouts
from planner.uniform import best_uniform
from planner.watch import Watch

UNIFORM = "uniform"
IMPROVEMENT = "improvement"
IMPROVED = 3
PROOF_S = 1.0
"""Seconds that the enumeration of a small problem gets even when the time is over, at most as many
as the search had."""

FAMILIES = (
    (("chain", chains),),
    (("mix", mixed_layouts), ("chain", subset_chains)),
)
"""What proposes layouts, in turn; after each line the best are improved."""


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
    """Every family in turn; the best so far are improved after the first and after the last.

    What is known early lets later families pass over what cannot be faster.
    """
    uniform = _uniform(instance, watch)
    scored = [s for s in uniform if shapes_of(s.draft) <= instance.space.template_limit]
    started: set[Draft] = set()
    spent = 0
    for families in FAMILIES:
        for name, family in families:
            if not watch.expired():
                scored += _score_all(instance, name, family(instance, watch), watch)
        polished, more = _polish(instance, _ranked(scored), watch, started)
        scored, spent = [*scored, *polished], spent + more
    return Found(
        ranked=tuple(_ranked(scored)),
        evaluated=len(scored) + spent,
        optimal=False,
        cut_off=watch.expired(),
        outside=tuple(s for s in uniform if s not in scored),
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


def _score_all(
    instance: Instance, family: str, drafts: Iterable[Draft], watch: Watch
) -> list[Scored]:
    """Exact scores of what a family proposes; the clock ends it once some layout fits."""
    scored: list[Scored] = []
    for draft in drafts:
        score = instance.evaluate(layout_of(instance, draft))
        watch.saw(score.step_time_s)
        scored.append(Scored(draft=draft, score=score, family=family))
        if watch.expired() and watch.best_s < float("inf"):
            break
    return scored


def _ranked(scored: Iterable[Scored]) -> list[Scored]:
    """Distinct drafts, best first."""
    return sorted({s.draft: s for s in scored}.values(), key=lambda s: s.rank)


def _polish(
    instance: Instance, ranked: list[Scored], watch: Watch, started: set[Draft]
) -> tuple[list[Scored], int]:
    """The best few layouts after local search, and the evaluations spent.

    started: where local search began or ended before; begins and ends are added.
    """
    polished: list[Scored] = []
    spent = 0
    for start in ranked[:IMPROVED]:
        if watch.expired() or not start.fits:
            break
        if start.draft in started:
            continue
        draft, score, evaluations = improve(instance, start.draft, start.score, watch)
        spent += evaluations
        started |= {start.draft, draft}
        polished.append(Scored(draft=draft, score=score, family=IMPROVEMENT))
    return polished, spent


def proof_clock(watch: Watch) -> Watch:
    """The clock of an enumeration after the search that ``watch`` has timed."""
    least_s = min(PROOF_S, watch.limit_s)
    return Watch(limit_s=max(least_s, watch.limit_s - watch.elapsed_s))


def _proved(instance: Instance, found: Found, watch: Watch) -> Found:
    """The result after the enumeration of a small problem; unchanged when it is too large."""
    best = found.best
    clock = proof_clock(watch)
    proof = prove(
        instance,
        best.draft if best else None,
        best.score.step_time_s if best else float("inf"),
        clock.expired,
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
        cut_off=(found.cut_off or clock.expired()) and not proof.complete,
    )


def joined(found: Found, part: Found) -> Found:
    """What was found, and what was found in a part of the space."""
    return replace(
        found,
        ranked=tuple(sorted((*found.ranked, *part.ranked), key=lambda s: s.rank)),
        evaluated=found.evaluated + part.evaluated,
        cut_off=found.cut_off or part.cut_off,
    )


def least_s(ranked: Sequence[Scored]) -> float:
    """Step time of the first; infinite of none, as when an enumeration finds nothing at all."""
    return ranked[0].score.step_time_s if ranked else float("inf")
