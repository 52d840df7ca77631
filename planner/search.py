"""The search: candidates of every family, exact scores, local improvement, and proof when small."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from planner.chains import Candidate, chain_layouts, pool_orders
from planner.exact import prove
from planner.improvement import improve
from planner.instance import Instance, Draft, Score, layout_of
from planner.masters import mixed_layouts

SCORED = 60
IMPROVED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A layout with its exact score; ``family`` names where it came from."""

    plan: Draft
    score: Score
    family: str

    @property
    def rank(self) -> tuple[float, float]:
        """Order of preference: faster first; layouts that do not fit by what they miss."""
        return self.score.step_time_s, self.score.missing_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Result of a search: layouts best first (none when nothing fits), effort and proof."""

    ranked: tuple[Scored, ...]
    evaluated: int
    optimal: bool
    cut_off: bool

    @property
    def best(self) -> Scored | None:
        """The fastest layout that fits."""
        fitting = [s for s in self.ranked if s.score.step_time_s < float("inf")]
        return fitting[0] if fitting else None


Expired = Callable[[], bool]


def search(instance: Instance, expired: Expired) -> Found:
    """The best layouts of the space that the heuristics find, or the proven optimum when small.

    ``expired`` is asked between layouts; once true the rest is left out and the result says so.
    """
    found = _heuristic(instance, expired)
    if found.best is None and not expired():
        found = _heuristic(replace(instance, largest_zero=3), expired)
    return _proved(instance, found)


def _heuristic(instance: Instance, expired: Expired) -> Found:
    scored = _distinct([*_score_chains(instance, expired), *_score_mixes(instance, expired)])
    ranked = sorted(scored, key=lambda s: s.rank)
    evaluated = len(ranked)
    polished, spent = _polish(instance, ranked, expired)
    ranked = sorted(_distinct([*polished, *ranked]), key=lambda s: s.rank)
    return Found(
        ranked=tuple(ranked), evaluated=evaluated + spent, optimal=False, cut_off=expired()
    )


def _proved(instance: Instance, found: Found) -> Found:
    """The result after the enumeration of a small problem; unchanged when it is too large."""
    best = found.best
    proof = prove(
        instance,
        best.plan if best else None,
        best.score.step_time_s if best else float("inf"),
    )
    ranked = found.ranked
    if proof.plan is not None and (best is None or proof.plan != best.plan):
        score = instance.evaluate(layout_of(instance, proof.plan))
        ranked = (Scored(plan=proof.plan, score=score, family="enumeration"), *ranked)
    return Found(
        ranked=ranked,
        evaluated=found.evaluated + proof.evaluated,
        optimal=proof.complete,
        cut_off=found.cut_off and not proof.complete,
    )


def _score_chains(instance: Instance, expired: Expired) -> Iterator[Scored]:
    longest = 3 if len(instance.chips) <= 4 else 2
    width = 6 if len(instance.chips) <= 2 else 3
    found: list[Candidate] = []
    for candidate in chain_layouts(instance, tuple(pool_orders(instance, longest)), width=width):
        found.append(candidate)
        if expired():
            break
    found.sort(key=lambda c: c.quick_s)
    for candidate in found[:SCORED]:
        yield _scored(instance, candidate.plan, "chain")


def _score_mixes(instance: Instance, expired: Expired) -> Iterator[Scored]:
    for plan in mixed_layouts(instance):
        if expired():
            break
        yield _scored(instance, plan, "mix")


def _scored(instance: Instance, plan: Draft, family: str) -> Scored:
    return Scored(plan=plan, score=instance.evaluate(layout_of(instance, plan)), family=family)


def _distinct(scored: list[Scored]) -> list[Scored]:
    return list({s.plan: s for s in reversed(scored)}.values())


def _polish(
    instance: Instance, ranked: list[Scored], expired: Expired
) -> tuple[list[Scored], int]:
    """The best few layouts after local search, and the evaluations spent."""
    polished: list[Scored] = []
    spent = 0
    for start in ranked[:IMPROVED]:
        if expired() or start.score.step_time_s == float("inf"):
            break
        plan, score, evaluations = improve(instance, start.plan, start.score)
        spent += evaluations
        polished.append(replace(start, plan=plan, score=score))
    return polished, spent
