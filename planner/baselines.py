"""What simpler planners would do on the same cluster, scored by the same evaluator."""

from collections.abc import Iterable

from planner.degrees import slowest_pool
from planner.instance import Instance, pools_of
from planner.search import UNIFORM, Scored
from planner.values import Baseline


def baselines(
    instance: Instance, scored: tuple[Scored, ...], step_time_s: float
) -> tuple[Baseline, ...]:
    """Uniform layout over all chips, best single pool, best without the slowest pool."""
    found = {"uniform": _best(s for s in scored if s.family == UNIFORM)}
    if len(instance.chips) > 1:
        slowest = slowest_pool(instance)
        used = [(s, pools_of(instance, s.draft)) for s in scored]
        found["single pool"] = _best(s for s, pools in used if len(pools) == 1)
        found["without slowest pool"] = _best(s for s, pools in used if slowest not in pools)
    return tuple(
        Baseline(
            name=name,
            step_time_s=seconds,
            speedup=None if seconds is None else seconds / step_time_s,
        )
        for name, seconds in found.items()
    )


def _best(scored: Iterable[Scored]) -> float | None:
    times = [s.score.step_time_s for s in scored]
    return min((t for t in times if t < float("inf")), default=None)
