"""Whether the winner stays one when the cost model is wrong, as it is in ways that layouts share.

The rivals of a plan are the best layouts of other kinds that its search finds. In every draw each
kind of chip is faster or slower than its sheet says, and each kind of link, for all layouts alike;
then all are scored again by the same evaluator. What all layouts share in equal parts (the
training stack) moves no order, so it is left out of the draws.

``T_j(e)``, j a layout, e the errors of a draw: log-normal, one for each kind of chip and link.
Probability of being best: share of draws in which the plan's ``T`` is least. Expected regret: mean
of ``T_plan / min_j T_j - 1``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import log, sqrt
from types import MappingProxyType

import numpy as np

from costmodel.errors import InputError
from costmodel.hardware.values import Chip, Cluster, Link, Pool
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from costmodel.software.intervals import interval
from costmodel.step import EVALUATOR_VERSION, evaluate
from planner.instance import layout_of
from planner.pricing import priced
from planner.space import declare
from planner.target_search import outcomes
from planner.targets.registry import ANY
from planner.values import Plan
from planner.watch import Watch

DRAWS = 32
RIVALS = 6
SEARCH_S = 3.0
SEED = 20_000

SPECIFIC = 0.5
"""Share of the variance of a prediction's error that is of single chips and links.

The rest is of the training stack and is common to all layouts of a job. Half and half is an
assumption: no published run tells the two apart.
"""

NORMAL_90 = 1.6449
"""Standard deviations on either side of the middle that hold 90 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Robustness:
    """rivals: other layouts scored. draws: worlds in which all were. spread: of one error, log.

    best_rival_relative: step time of the nearest rival / the plan's - 1, as predicted.
    """

    rivals: int
    draws: int
    spread: float
    probability_best: float
    expected_regret: float
    best_rival_relative: float | None

    @property
    def survives(self) -> bool:
        """Whether choosing the plan costs 1 % at most on average."""
        return self.expected_regret <= 0.01


def robustness(plan: Plan, *, draws: int = DRAWS, search_s: float = SEARCH_S) -> Robustness | None:
    """How sure the choice is; None for a plan without a layout."""
    if plan.layout is None or plan.evaluation is None:
        return None
    rivals = _rivals(plan, search_s)
    spread = _spread(plan)
    layouts = [plan.layout, *rivals]
    nominal = _seconds(plan.problem, layouts)
    random = np.random.default_rng(SEED)
    worlds = [world(plan.problem, random, spread) for _ in range(draws if rivals else 0)]
    times = np.array([_seconds(world, layouts) for world in worlds]).reshape(-1, len(layouts))
    regret = times[:, 0] / times.min(axis=1) - 1.0 if rivals else np.zeros(1)
    return Robustness(
        rivals=len(rivals),
        draws=len(worlds),
        spread=spread,
        probability_best=float(np.mean(regret <= 1e-9)),
        expected_regret=float(np.mean(regret)),
        best_rival_relative=min(nominal[1:]) / nominal[0] - 1.0 if rivals else None,
    )


def _spread(plan: Plan) -> float:
    """Standard deviation of the logarithm of one chip's or link's error."""
    assert plan.evaluation is not None
    low, high = interval(plan.evaluation)
    return sqrt(SPECIFIC) * log(high / low) / (2 * NORMAL_90)


def _rivals(plan: Plan, search_s: float) -> list[Layout]:
    """The best layout of every other kind that fits, the fastest first."""
    problem = plan.problem
    space = declare(
        problem.model, problem.cluster, problem.job, target=ANY, evaluator=EVALUATOR_VERSION
    )
    tried = outcomes(problem, priced(problem, space), plan.target, Watch(limit_s=search_s))
    assert plan.layout is not None
    seen, found = {_kind(plan.layout)}, list[Layout]()
    for one in tried:
        for scored in (s for s in one.found.ranked if s.fits):
            layout = layout_of(one.instance, scored.draft)
            if _kind(layout) not in seen:
                seen.add(_kind(layout))
                found.append(layout)
    return found[:RIVALS]


def _kind(layout: Layout) -> frozenset[tuple[object, ...]]:
    """What tells kinds of layouts apart: degrees by pool, and the number of stages."""
    return frozenset(
        (s.option.pool, s.option.tp, s.option.ep, s.option.micro_batch_size, len(p.stages))
        for p in layout.pipelines
        for s in p.stages
    )


def _seconds(problem: Problem, layouts: Sequence[Layout]) -> list[float]:
    return [_step_s(problem, layout) for layout in layouts]


def _step_s(problem: Problem, layout: Layout) -> float:
    try:
        return evaluate(problem, layout).step_time_s
    except InputError:
        return float("inf")


def world(problem: Problem, random: np.random.Generator, spread: float) -> Problem:
    """The problem with one error for each kind of chip and of link."""
    cluster = problem.cluster
    chips = _errors((pool.chip.name for pool in cluster.pools), random, spread)
    names = [link.name for p in cluster.pools for link in (p.scale_up, p.scale_out)]
    names += [between.link.name for between in cluster.between]
    links = _errors(names, random, spread)
    pools = tuple(_pool(pool, chips, links) for pool in cluster.pools)
    between = tuple(replace(b, link=_link(b.link, links[b.link.name])) for b in cluster.between)
    return replace(problem, cluster=_renamed(cluster, pools, between, random))


def _renamed(
    cluster: Cluster,
    pools: tuple[Pool, ...],
    between: tuple[object, ...],
    random: np.random.Generator,
) -> Cluster:
    """The cluster in another world; caches tell worlds apart by their names too."""
    name = f"{cluster.name} {random.integers(1 << 60)}"
    return replace(cluster, name=name, pools=pools, between=between)


def _errors(names: Iterable[str], random: np.random.Generator, spread: float) -> dict[str, float]:
    return {name: float(np.exp(random.normal(0.0, spread))) for name in sorted(set(names))}


def _pool(pool: Pool, chips: dict[str, float], links: dict[str, float]) -> Pool:
    factor = chips[pool.chip.name]
    own = pool.flop_per_s and pool.flop_per_s * factor
    efficiency = pool.efficiency and pool.efficiency * factor
    return replace(
        pool,
        chip=_chip(pool.chip, factor),
        flop_per_s=own,
        efficiency=efficiency,
        scale_up=_link(pool.scale_up, links[pool.scale_up.name]),
        scale_out=_link(pool.scale_out, links[pool.scale_out.name]),
    )


def _chip(chip: Chip, factor: float) -> Chip:
    """Products and streams faster by one factor."""
    fractions = {name: value and value * factor for name, value in chip.matmul_fraction.items()}
    memory = chip.memory_fraction and chip.memory_fraction * factor
    return replace(chip, matmul_fraction=MappingProxyType(fractions), memory_fraction=memory)


def _link(link: Link, factor: float) -> Link:
    return replace(link, bytes_per_s=link.bytes_per_s * factor)
