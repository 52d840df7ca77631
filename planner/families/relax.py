"""The kernel of the bound: the least value of a relaxed chain.

Stages are placed from the last to the first (proof: ``docs/theory/equal-degree-and-meshes.md``).
What the choices so far mean for the stages before them is one number, the *slack*: by how much the
windows of stages that begin at the frontmost one stay below the limit. It is rounded up to a step,
which only allows more.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from planner.arrays import FloatArray, IntArray
from planner.families.floors import pool_floor, rest_floor, run_floor, stage_floor
from planner.families.ground import Ground, Limits
from planner.families.spans import BOTH, FIRST, INNER, LAST, Spans

STEPS = np.array(
    [0.0, 5e-4, 1e-3, 2e-3, 4e-3, 7e-3, 0.012, 0.02, 0.035, 0.06, 0.1, 0.15, 0.22, 0.32, np.inf]
)
"""Slack that is told apart, over the limit."""


class Task(NamedTuple):
    """Everything that does not change: stages, node, slack steps in seconds, and the log."""

    spans: Spans
    node: Limits
    steps: FloatArray
    log: IntArray


class Menu(NamedTuple):
    """Stages of one slot and place, quickest first; pacing: those that may set the period."""

    plain: IntArray
    pacing: IntArray


class States(NamedTuple):
    """Least value of a chain by phase and slack step, (..., 2, N), and how it came about.

    Phase 0: the window that sets the period begins further up; 1: it has begun. parent: entry in
    the log of the chain without its first stage; stage: that stage.
    """

    value: FloatArray
    parent: IntArray
    stage: IntArray


class Rule(NamedTuple):
    """What a run of a slot obeys: most stages, hand-over inside the pool, and what other pools,
    (2, P + 2), and up to n more stages, (2, n + 1, P + 2), take off at most."""

    units: int
    hop: float
    rest: FloatArray
    more: FloatArray


@nb.njit(cache=True, nogil=True)
def _beats(spans: Spans, q: int, s: int) -> bool:
    """Whether stage q is as good as stage s in everything."""
    return bool(
        spans.slot[q] == spans.slot[s]
        and spans.place[q] == spans.place[s]
        and spans.work[q] <= spans.work[s]
        and spans.size[q] >= spans.size[s]
        and spans.most[q] >= spans.most[s]
        and spans.after[q] <= spans.after[s]
    )


@nb.njit(cache=True, nogil=True)
def useful(spans: Spans) -> IntArray:
    """Stages that no other beats, quickest first."""
    count = len(spans.work)
    kept, before = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    groups = 4 * (spans.slot.max() + 1) if count else 0
    last = np.full(groups, -1, np.int64)
    found = 0
    for s in np.argsort(spans.work):
        group = 4 * spans.slot[s] + spans.place[s]
        q = int(last[group])
        while q >= 0 and not _beats(spans, q, s):
            q = int(before[q])
        if q < 0:
            before[s], last[group] = last[group], s
            kept[found] = s
            found += 1
    return kept[:found]


@nb.njit(cache=True, nogil=True)
def pacing(spans: Spans, hop: float, low: float, high: float) -> IntArray:
    """Stages within the limit that none beats which could set the period as well, quickest first.

    One that is quicker than ``low`` may be beaten by its better and yet set the period, with its
    hand-over, where that does not. hop: the longest hand-over.
    """
    order = np.argsort(spans.work)
    first = np.searchsorted(spans.work[order], low - hop)
    kept = np.zeros(len(order), np.int64)
    found = 0
    for s in order[first:]:
        if spans.work[s] > high:
            break
        beaten = False
        for q in kept[:found]:
            if spans.work[q] >= low and _beats(spans, q, s):
                beaten = True
                break
        if not beaten:
            kept[found] = s
            found += 1
    return kept[:found]


@nb.njit(cache=True, nogil=True)
def _menu(spans: Spans, kept: Menu, slot: int, place: int) -> Menu:
    a, b = kept.plain, kept.pacing
    return Menu(
        a[(spans.slot[a] == slot) & (spans.place[a] == place)],
        b[(spans.slot[b] == slot) & (spans.place[b] == place)],
    )


@nb.njit(cache=True, nogil=True)
def _placed(task: Task, menu: Menu, before: States, after: States, hop: float, j: int) -> None:
    """Puts one stage at position j before all states; of a first one only the best is kept.

    before, after: by phase and step, (2, N); where after has one step, the stage is the first.
    """
    node, top = task.node, len(task.steps) - 1
    ends = after.value.shape[1] == 1
    if ends and j < node.least:
        return
    for phase in range(2):
        weight, credit = (node.weight, node.credit) if phase == 0 else (1.0, 0.0)
        for i in range(top + 1):
            base = before.value[phase, i] + weight * hop - credit
            if base == np.inf:
                continue
            limit = node.high - (max(0.0, hop - task.steps[i]) if node.steady else 0.0)
            least, parent = node.low - hop, before.parent[phase, i]
            if phase == 1 or not ends:
                state = (base, weight, limit, -np.inf)
                _extended(task, menu.plain, after, state, (phase, j, parent))
            if phase == 0:
                state = (base, weight, limit, least)
                _extended(task, menu.pacing, after, state, (1, j, parent))


@nb.njit(cache=True, nogil=True)
def _extended(
    task: Task,
    chosen: IntArray,
    after: States,
    state: tuple[float, float, float, float],
    into: tuple[int, int, int],
) -> None:
    """Puts each of some stages before one state.

    state: its value, what a second counts, most and least seconds. into: phase, j and parent.
    """
    base, weight, limit, least = state
    phase, j, parent = into
    spans, steps, price = task.spans, task.steps, task.node.price
    kept, top = min(j, task.node.microbatches), after.value.shape[1] - 1
    low, rest = task.node.low, task.node.rest
    for s in chosen:
        work = spans.work[s]
        if work > limit:
            break
        if work < least or spans.most[s] < kept:
            continue
        value = base + weight * work - price * spans.size[s]
        if least > -np.inf and work < low:
            value -= min(rest, (task.node.microbatches - 1) * (low - work))
        q = top
        while q > 0 and limit - work <= steps[q - 1]:
            q -= 1
        if top == 0:
            value += spans.after[s]
        if value < after.value[phase, q]:
            after.value[phase, q] = value
            after.parent[phase, q] = parent
            after.stage[phase, q] = s


@nb.njit(cache=True, nogil=True)
def _thinned(states: FloatArray, most: FloatArray) -> None:
    """Drops states for which one with more slack is no worse, (P + 1, 2, N).

    most: value from which a state is no use, (2, P + 2).
    """
    for j in range(len(states)):
        for phase in range(2):
            least = most[phase, j]
            for i in range(states.shape[2] - 1, -1, -1):
                if states[j, phase, i] >= least:
                    states[j, phase, i] = np.inf
                else:
                    least = states[j, phase, i]


@nb.njit(cache=True, nogil=True)
def _logged(log: IntArray, states: States) -> None:
    """Writes down what is left; ``parent`` becomes the entry. A full log has no entry (0)."""
    for j in range(len(states.value)):
        for phase in range(2):
            for i in range(states.value.shape[2]):
                if states.value[j, phase, i] == np.inf:
                    continue
                n = log[0, 0] + 1
                if n < len(log):
                    log[n, 0], log[n, 1] = states.parent[j, phase, i], states.stage[j, phase, i]
                    log[0, 0] = n
                else:
                    n = 0
                states.parent[j, phase, i] = n


@nb.njit(cache=True, nogil=True)
def _merged(new: States, into: States) -> None:
    """Keeps the better of each state."""
    for j in range(len(new.value)):
        for phase in range(2):
            for i in range(new.value.shape[2]):
                if new.value[j, phase, i] < into.value[j, phase, i]:
                    into.value[j, phase, i] = new.value[j, phase, i]
                    into.parent[j, phase, i] = new.parent[j, phase, i]


@nb.njit(cache=True, nogil=True)
def _states(lines: int, steps: int) -> States:
    shape = (lines, 2, steps)
    return States(np.full(shape, np.inf), np.zeros(shape, np.int64), np.zeros(shape, np.int64))


@nb.njit(cache=True, nogil=True)
def _line(states: States, j: int) -> States:
    return States(states.value[j], states.parent[j], states.stage[j])


@nb.njit(cache=True, nogil=True)
def _begun(task: Task, kept: Menu, slot: int, run: States, ended: States) -> None:
    """Chains of one stage, the last of all."""
    N = run.value.shape[2]
    nothing = _states(1, N)
    nothing.value[0, 0, N - 1] = 0.0
    before = _line(nothing, 0)
    _placed(task, _menu(task.spans, kept, slot, LAST), before, _line(run, 1), 0.0, 1)
    _placed(task, _menu(task.spans, kept, slot, BOTH), before, _line(ended, 0), 0.0, 1)


@nb.njit(cache=True, nogil=True)
def _longer(
    task: Task, menus: tuple[Menu, Menu], chains: States, run: States, ended: States, hop: float
) -> None:
    """Puts one stage, inner or first, before chains of each length."""
    for j in range(1, len(run.value) - 1):
        if chains.value[j].min() < np.inf:
            before = _line(chains, j)
            _placed(task, menus[0], before, _line(run, j + 1), hop, j + 1)
            _placed(task, menus[1], before, _line(ended, 0), hop, j + 1)


@nb.njit(cache=True, nogil=True)
def _grown(
    task: Task, menus: tuple[Menu, Menu], run: States, into: States, ended: States, rule: Rule
) -> None:
    """Lets a run of one stage grow to as many as there are; ``into`` takes all lengths."""
    limits = task.node.goal - rule.rest
    for n in range(rule.units):
        left = rule.units - 1 - n
        _thinned(run.value, limits - rule.more[:, left])
        _logged(task.log, run)
        _merged(run, into)
        if left == 0 or run.value.min() == np.inf:
            break
        longer = _states(len(run.value), run.value.shape[2])
        _longer(task, menus, run, longer, ended, rule.hop)
        run = longer
    _thinned(into.value, limits)


@nb.njit(cache=True, nogil=True)
def _may_follow(ground: Ground, rest: int, k: int, q: int) -> bool:
    """Whether pool q may come before a chain over ``rest`` that begins in pool k."""
    apart = ground.kin[q] & rest != 0 and not ground.kin[q] >> k & 1
    return bool(rest >> k & 1 and not apart)


@nb.njit(cache=True, nogil=True)
def least_chain(
    spans: Spans, plain: IntArray, ground: Ground, node: Limits, log: IntArray
) -> tuple[float, int]:
    """Least summed value of a chain in which each pool is one run of stages of one slot.

    Infinite when none is below the goal. Also the entry of its first stage in the log: (parent,
    stage) by entry, from 1. plain: stages that no other beats, quickest first.
    """
    K, P, N = len(ground.hop), node.deepest, len(STEPS)
    task = Task(spans, node, STEPS * node.high, log)
    within = plain[: np.searchsorted(spans.work[plain], node.high, side="right")]
    kept = Menu(within, pacing(spans, ground.hop.max(), node.low, node.high))
    stage = stage_floor(spans, node, kept.plain, len(ground.pool))
    pools = pool_floor(stage, ground)
    ended, none = _states(1, 1), np.zeros((P + 1, 2, N), np.int64)
    ended.value[0, 1, 0] = node.goal
    value = np.full((1 << K, K, P + 1, 2, N), np.inf)
    parent = np.zeros((1 << K, K, P + 1, 2, N), np.int64)
    alive = np.zeros((1 << K, K), np.bool_)
    for mask in range(1, 1 << K):
        beside = rest_floor(pools, mask)
        for slot in range(len(ground.pool)):
            q = ground.pool[slot]
            if not mask >> q & 1 or stage[0, slot, 1] == np.inf:
                continue
            rest, run = mask ^ (1 << q), _states(P + 1, N)
            menus = _menu(spans, kept, slot, INNER), _menu(spans, kept, slot, FIRST)
            if rest == 0:
                _begun(task, kept, slot, run, ended)
            for k in range(K):
                if alive[rest, k] and _may_follow(ground, rest, k, q):
                    chains = States(value[rest, k], parent[rest, k], none)
                    _longer(task, menus, chains, run, ended, float(ground.hop[q, k]))
            into = States(value[mask, q], parent[mask, q], none)
            hop, units = float(ground.hop[q, q]), int(ground.units[slot])
            rule = Rule(units, hop, beside, run_floor(stage[:, slot], units))
            _grown(task, menus, run, into, ended, rule)
            alive[mask, q] = value[mask, q].min() < np.inf
    if ended.value[0, 1, 0] >= node.goal:
        return np.inf, 0
    _logged(log, ended)
    return ended.value[0, 1, 0], ended.parent[0, 1, 0]
