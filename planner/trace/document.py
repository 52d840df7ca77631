"""The whole trace of a simulated pipeline: a process for every stage, and one for the step."""

import json
from collections.abc import Iterator
from typing import Any

from planner.simulation import Simulation
from planner.trace import events
from planner.trace.events import STEP, Event, ns, process_of
from planner.trace.passes import Drawn, drawn_passes
from planner.trace.stage import COMPUTE, Cut, next_place, stage_events

MAX_PASSES = 40_000
"""Passes drawn at most; 50 MB hold some 60,000."""


def cut_for(simulation: Simulation, most: int) -> Cut:
    """Which micro-batches to leave out so that at most so many passes are drawn."""
    share = simulation.run.seconds.visits
    each = -(-simulation.run.lists.passes.shape[0] * simulation.run.lists.passes.shape[1] // share)
    kept = max(2, most // each)
    if kept >= share:
        return Cut(start=share, stop=share)
    return Cut(start=(kept + 1) // 2, stop=share - kept // 2)


def trace_text(simulation: Simulation, most: int = MAX_PASSES) -> str:
    """The trace as JSON: one event a line."""
    cut = cut_for(simulation, most)
    lines = ",\n".join(_compact(event) for event in trace_events(simulation, cut))
    head = _compact({"displayTimeUnit": "ms", "otherData": _about(simulation, cut)})
    return f'{head[:-1]},"traceEvents":[\n{lines}\n]}}\n'


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _about(simulation: Simulation, cut: Cut) -> dict[str, Any]:
    """What the trace shows, and what it leaves out."""
    document = simulation.document()
    names = ("plan", "pipeline", "microbatches", "step_time_s")
    return {
        **{name: document[name] for name in names},
        "schedule": document["schedule"]["kind"],
        "microbatches_left_out": [cut.start, cut.stop] if cut.stop > cut.start else [],
    }


def trace_events(simulation: Simulation, cut: Cut) -> Iterator[Event]:
    """All events: metadata and the step, then stage by stage, then the arrows between them."""
    yield from _step(simulation)
    arrows: dict[tuple[str, int, int], Drawn] = {}
    for stage in range(len(simulation.stages)):
        passes = list(drawn_passes(simulation.run, stage))
        yield from stage_events(simulation, stage, passes, cut)
        share = simulation.run.seconds.visits
        for one in passes:
            if cut.drawn(one.microbatch, share) and one.name[0] != "W":
                arrows[one.name[0], one.place, one.microbatch] = one
    yield from _flows(simulation, arrows)


def _step(simulation: Simulation) -> Iterator[Event]:
    """The first process: from one optimizer step to the next, as the whole plan takes it."""
    yield from events.process(STEP, "step")
    yield from events.lane(COMPUTE, STEP, "whole plan")
    parts = {name: seconds for name, seconds in simulation.evaluation.breakdown.items() if seconds}
    span = (0, ns(simulation.evaluation.step_time_s))
    yield events.slice_("step", "step", (STEP, COMPUTE), span, {"breakdown_s": parts})


def _flows(simulation: Simulation, arrows: dict[tuple[str, int, int], Drawn]) -> Iterator[Event]:
    """An arrow from every pass to the one on another stage that takes its result."""
    number = 0
    for (letter, _, microbatch), one in arrows.items():
        other = next_place(simulation, one)
        taker = arrows.get((letter, other, microbatch)) if other is not None else None
        if taker is None or taker.stage == one.stage:
            continue
        number += 1
        start, end = one.computing
        sent = (process_of(one.stage), COMPUTE, end - (end > start))
        received = (process_of(taker.stage), COMPUTE, taker.computing[0])
        yield from events.flow(number, sent, received)
