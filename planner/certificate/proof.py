"""``prove``: the largest step time that the certificate rules out for every layout of the space.

Best first over boxes of the number of pipelines: the box with the least proved time is worked on.
There a trial time below the smallest one that the known templates reach is tested at the prices
of the linear program; templates that break the prices join the program.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

import numpy as np

from costmodel.problem import Problem
from planner.arrays import FloatArray
from planner.certificate.cells import Test
from planner.certificate.columns import Columns
from planner.certificate.master import Solution, solve
from planner.certificate.offers import Box, Relaxation, relaxation
from planner.certificate.relaxed import SLACK
from planner.certificate.sweep import seeds, sweep
from planner.instance import Instance

FIRST_MARGIN, LEAST_MARGIN = 0.16, 1e-3
"""How far below what is reached the first trial is, and the step at which a box is done."""

SEARCH_MARGIN, LEAST_GAIN, WIDE = 0.02, 0.005, 1.05
"""Templates are looked for so far below what is reached, in cells no narrower than the ratio, until
what is reached falls by less than the gain: prices of few templates are poor ones to prove with."""

PATIENCE_S, LONGER = 8.0, 1.3
"""Seconds of the first long test, and how much longer each later one may take."""

NARROW = 2.0
"""Ratio of the ends of a box that is not cut again."""

MOST_POOLS = 3
"""More pools than these are proved in one box first."""

QUICK_S = 3.0
"""Seconds of a short test; one that took no longer is followed by one much nearer to what is
reached."""

QUICK, SEARCH, LONG = range(3)
"""Stages of the work on a box: short tests, as long as they close; more templates; long tests."""

BISECTIONS = 14
PROVABLE = ("1f1b", "gpipe")

Expired = Callable[[], bool]


@dataclass(slots=True, kw_only=True)
class _Front:
    """A box: what is proved in it, the least time at which a proof failed, its templates.

    Times are seconds of pipeline and synchronisation. closed: the last test that was proved;
    tried_s: the last test of another box that was tried here. stage: of the work (``_advance``);
    searched_s: what was reached when templates were last looked for; patience_s: of a test;
    long_s: the last test that took longer.
    """

    box: Box
    proved_s: float
    columns: Columns
    failed_s: float = np.inf
    margin: float = FIRST_MARGIN
    done: bool = False
    closed: Test | None = None
    tried_s: float = 0.0
    stage: int = QUICK
    searched_s: float = np.inf
    patience_s: float = PATIENCE_S
    long_s: float = np.inf


def prove(
    problem: Problem, instance: Instance, incumbent_s: float, proved_s: float, expired: Expired
) -> float:
    """Seconds below which no layout of the space can be, at least ``proved_s``.

    incumbent_s: step time of a known layout, beyond which nothing is tried. expired: asked between
    short pieces of work; what is proved by then is returned. Schedules without a proof, and models
    of which only a part is trained, return ``proved_s``.
    """
    if instance.trained_share < 1.0 or instance.space.schedules[0] not in PROVABLE:
        return proved_s
    goal, floor = incumbent_s - instance.floor, instance.floor
    fronts = [_front(problem, instance, box, proved_s - floor) for box in boxes(problem, instance)]
    while not expired():
        front = min(fronts, key=lambda f: (f.proved_s, f.done))
        if front.done:
            halves = _halves(front.box)
            if not halves or front.proved_s >= goal * (1 - LEAST_MARGIN):
                break
            fronts.remove(front)
            fronts += [_front(problem, instance, box, front.proved_s) for box in halves]
            continue
        _work(front, fronts, goal, expired)
        front.done = front.done or front.proved_s >= goal * (1 - LEAST_MARGIN)
    least = min(front.proved_s for front in fronts)
    return max(proved_s, least * (1 - SLACK) + floor)


def boxes(problem: Problem, instance: Instance) -> tuple[Box, ...]:
    """Many pipelines, and so few that gradients may stay inside a scale-up domain.

    With many pools, all at once: tests take long there.
    """
    most, pools = min(instance.batch, sum(instance.chips)), instance.space.pools
    few = max(problem.cluster.pool(name).scale_up_domain for name in pools)
    if few >= most or len(pools) > MOST_POOLS:
        return (Box(least=1, most=most),)
    return Box(least=few + 1, most=most), Box(least=1, most=few)


def _halves(box: Box) -> tuple[Box, ...]:
    """The box in two, as many times as many pipelines in each; none of a narrow one."""
    middle = int((box.least * box.most) ** 0.5)
    if box.most < NARROW * box.least:
        return ()
    return Box(least=middle + 1, most=box.most), Box(least=box.least, most=middle)


def _front(problem: Problem, instance: Instance, box: Box, proved_s: float) -> _Front:
    columns = Columns(
        relaxed=relaxation(problem, instance, box),
        batch=instance.batch,
        piped=instance.space.schedules[0] == "gpipe",
    )
    return _Front(box=box, proved_s=proved_s, columns=columns)


def _work(front: _Front, fronts: list[_Front], goal: float, expired: Expired) -> None:
    """One test: of prices that closed another box, else of the box's own."""
    others = [f.closed for f in fronts if f is not front and f.closed is not None]
    latest = max(others, key=lambda test: test.budget_s, default=None)
    if latest is None or not _same_prices(front, latest, expired):
        _advance(front, goal, expired)


def _advance(front: _Front, goal: float, expired: Expired) -> None:
    """One test at a trial time, and what follows from it, by the stage of the box."""
    upper = min(_reached(front, goal), front.failed_s)
    if upper <= front.proved_s * (1 + LEAST_MARGIN):
        front.done = True
        return
    if front.stage == SEARCH:
        _look(front, upper, goal, expired)
        return
    hopeful = front.stage == QUICK and upper >= goal
    trial = upper * (1 - (LEAST_MARGIN if hopeful else front.margin))
    least = min(upper, front.long_s)
    if not front.proved_s < trial < least or front.failed_s < np.inf:
        trial = 0.5 * (front.proved_s + least)
    test = _test(front, trial)
    if test is None:
        front.failed_s = trial
    elif not front.columns.shapes:
        front.columns.add(list(seeds(front.columns, test, expired)))
        front.done = not front.columns.shapes and _closes(front, test, trial, expired)
    else:
        _closes(front, test, trial, expired)


def _look(front: _Front, upper: float, goal: float, expired: Expired) -> None:
    """Looks for templates a little below what is reached, in wide cells."""
    gain, front.searched_s = front.searched_s - upper, upper
    test = _test(front, upper * (1 - SEARCH_MARGIN))
    if test is None or (upper < goal and gain < LEAST_GAIN * upper):
        front.stage = LONG
        return
    verdict = sweep(front.columns, test, expired, narrowest=WIDE)
    if verdict is None or not verdict.found:
        front.stage = LONG
    if verdict is not None:
        front.columns.add([*verdict.found, *verdict.near])


def _closes(front: _Front, test: Test, trial: float, expired: Expired) -> bool:
    """Runs the test; what it teaches is kept."""
    start, quick = monotonic(), front.stage == QUICK
    until = start + (QUICK_S if quick else front.patience_s)
    verdict = sweep(front.columns, test, lambda: expired() or monotonic() > until)
    if not quick:
        front.patience_s *= LONGER
    if verdict is None:
        front.stage, front.long_s = (SEARCH, np.inf) if quick else (LONG, trial)
        return False
    if verdict.closed:
        front.proved_s, front.closed, front.long_s = trial, test, np.inf
        front.margin *= 0.25 if monotonic() - start < QUICK_S else 0.5
        return True
    front.columns.add([*verdict.found, *verdict.near])
    if not verdict.found and quick:
        front.stage = SEARCH
    elif not verdict.found:
        front.failed_s = trial
    return False


def _same_prices(front: _Front, test: Test, expired: Expired) -> bool:
    """Whether what closed in another box closes here, later than what is proved."""
    seconds = test.budget_s / (1 + SLACK)
    if test.toll > 0 or seconds <= front.proved_s * (1 + LEAST_MARGIN):
        return False
    if front.tried_s >= seconds or len(test.prices) != len(front.columns.relaxed.chips):
        return False
    front.tried_s = seconds
    verdict = sweep(front.columns, test, expired)
    if verdict is not None and verdict.closed:
        front.proved_s, front.closed = seconds, test
        return True
    front.columns.add([*verdict.found, *verdict.near] if verdict else [])
    return False


def _solved(front: _Front, seconds: float) -> Solution:
    columns = front.columns
    gains = columns.gains(seconds)
    return solve(gains, columns.chips, columns.relaxed.chips, front.box.most)


def _reached(front: _Front, goal: float) -> float:
    """Least time, up to the goal, in which the known templates hold the batch."""
    low, high, batch = front.proved_s, goal, front.columns.batch
    if not front.columns.shapes or _solved(front, high).value < batch:
        return goal
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if _solved(front, middle).value >= batch:
            high = middle
        else:
            low = middle
        if high - low <= 0.1 * LEAST_MARGIN * high:
            break
    return high


def _test(front: _Front, seconds: float) -> Test | None:
    """Prices whose worth of all chips is the batch, less the slack; None if they overcharge."""
    solution, relaxed = _solved(front, seconds), front.columns.relaxed
    batch = front.columns.batch
    if solution.value >= batch:
        return None
    prices, toll = solution.prices, solution.toll
    if solution.value <= 0:
        prices, toll = _first_prices(relaxed), 0.0
    worth = float(prices @ relaxed.chips) + toll * front.box.most
    scale = batch * (1 - SLACK) / worth
    return Test(budget_s=seconds * (1 + SLACK), prices=prices * scale, toll=toll * scale)


def _first_prices(relaxed: Relaxation) -> FloatArray:
    """Chips by the sequences that their best option does in a second."""
    speed = np.zeros(len(relaxed.chips))
    for priced in relaxed.offers:
        rate = priced.samples / (priced.offer.work * relaxed.layers * priced.chips)
        np.maximum.at(speed, priced.kind, rate)
    return np.maximum(speed, 1e-12 * speed.max())
