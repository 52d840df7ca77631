"""One stage in the trace: its passes, communication, memory, and the end of the step."""

from collections.abc import Iterator
from dataclasses import dataclass

from costmodel.schedules.kind import Phase
from planner.simulation import Simulation
from planner.trace import events
from planner.trace.events import Event, ns, process_of
from planner.trace.memory import held_bytes
from planner.trace.passes import WORDS, Drawn

COMPUTE, COMMUNICATION = 1, 2
"""Lanes of a stage; communication that overlaps other communication goes to 3, 4..."""

MEMORY = "memory (bytes)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Micro-batches [start, stop) of every way that are left out, in the middle of the step."""

    start: int
    stop: int

    def drawn(self, microbatch: int, share: int) -> bool:
        """Whether a micro-batch is drawn; ``share``: micro-batches of one way."""
        return not self.start <= microbatch % share < self.stop


def stage_events(
    simulation: Simulation, stage: int, passes: list[Drawn], cut: Cut
) -> Iterator[Event]:
    """Everything of one stage: its passes, communication, memory, and the end of the step."""
    share = simulation.run.seconds.visits
    number, drawn = process_of(stage), [p for p in passes if cut.drawn(p.microbatch, share)]
    yield from events.process(number, _title(simulation, stage))
    yield from events.lane(COMPUTE, number, "compute")
    for one in drawn:
        args = {"phase": WORDS[one.phase], "microbatch": one.microbatch, "chunk": one.chunk}
        yield events.slice_(one.name, "pass", (number, COMPUTE), one.computing, args)
    yield from _left_out(simulation, number, passes, cut)
    yield from _communication(simulation, stage, drawn)
    yield from _end(simulation, stage)
    yield from _memory(simulation, stage, passes, cut)


def _title(simulation: Simulation, stage: int) -> str:
    held = simulation.stages[stage].stage
    ends = " +E" * held.embedding + " +H" * held.head
    layers = ", ".join(f"{a}-{b - 1}" if b - a > 1 else f"{a}" for a, b in held.chunks if b > a)
    return f"stage {stage}: {held.option.pool}, layers {layers or 'none'}{ends}"


def _left_out(
    simulation: Simulation, number: int, passes: list[Drawn], cut: Cut
) -> Iterator[Event]:
    """A slice in the place of the micro-batches that are not drawn."""
    share = simulation.run.seconds.visits
    gone = [p for p in passes if not cut.drawn(p.microbatch, share)]
    if not gone:
        return
    before = max(p.span[1] for p in passes if p.microbatch % share < cut.start)
    after = min(p.span[0] for p in passes if p.microbatch % share >= cut.stop)
    computing = sum(p.computing[1] - p.computing[0] for p in gone)
    args = {"passes": len(gone), "computing_s": computing / events.NS}
    if after > before:
        name = f"micro-batches {cut.start} to {cut.stop - 1} not drawn"
        yield events.slice_(name, "left out", (number, COMPUTE), (before, after), args)


def _communication(simulation: Simulation, stage: int, drawn: list[Drawn]) -> Iterator[Event]:
    """Slices of communication, on as many lanes as overlap."""
    found: list[tuple[tuple[int, int], str, str, Event]] = []
    for one in drawn:
        args = {"microbatch": one.microbatch, "chunk": one.chunk}
        for kind, start, end in one.waiting:
            found.append(((start, end), f"{kind} {one.name}", kind, args))
        for kind, start, end in one.hidden:
            found.append(((start, end), f"{kind} {one.name}, hidden", kind, args))
        hop = _hop(simulation, one)
        if hop is not None:
            to, seconds = hop
            span = (one.span[1], one.span[1] + ns(seconds))
            found.append((span, f"{one.name} to stage {to}", "pp", args | {"to": to}))
    time = simulation.stages[stage].time
    start = time.end_s + time.wait_s
    if time.sync_s > 0.0:
        span = (ns(start), ns(start + time.sync_s))
        found.append((span, "gradients and weights", "dp", {}))
    yield from _on_lanes(process_of(stage), sorted(found, key=lambda slice_: slice_[0]))


def _on_lanes(number: int, found: list[tuple[tuple[int, int], str, str, Event]]) -> Iterator[Event]:
    """Every slice on the first lane that is free, and the lanes' names."""
    free: list[int] = []
    for span, name, kind, args in found:
        if span[1] <= span[0]:
            continue
        k = next((k for k, end in enumerate(free) if end <= span[0]), len(free))
        free[k : k + 1] = [span[1]]
        yield events.slice_(name, kind, (number, COMMUNICATION + k), span, args)
    for k in range(len(free)):
        name = "communication" if k == 0 else f"communication {k + 1}"
        yield from events.lane(COMMUNICATION + k, number, name)


def next_place(simulation: Simulation, one: Drawn) -> int | None:
    """Where the result of a pass goes; None at the ends of a way and for weight gradients."""
    ways = len(simulation.run.seconds.routes[0])
    if one.phase is Phase.WEIGHT:
        return None
    step = 1 if one.phase is Phase.FORWARD else -1
    other = one.place + step
    return other if other // ways == one.place // ways and other >= 0 else None


def _hop(simulation: Simulation, one: Drawn) -> tuple[int, float] | None:
    """The stage that a result is handed to, and the seconds it takes."""
    other, seconds = next_place(simulation, one), simulation.run.seconds
    if other is None or seconds.stages[other] == one.stage:
        return None
    forward = one.phase is Phase.FORWARD
    took = seconds.passes.up_s[one.place] if forward else seconds.passes.down_s[other]
    return seconds.stages[other], float(took)


def _end(simulation: Simulation, stage: int) -> Iterator[Event]:
    """The optimizer, after the stage's gradients are summed."""
    time = simulation.stages[stage].time
    span = (ns(time.finish_s - time.optimizer_s), ns(time.finish_s))
    yield events.slice_("optimizer", "optimizer", (process_of(stage), COMPUTE), span, {})


def _memory(simulation: Simulation, stage: int, passes: list[Drawn], cut: Cut) -> Iterator[Event]:
    """The memory counter at the passes that are drawn, and its highest value in any case."""
    share, memory = simulation.run.seconds.visits, simulation.stages[stage].memory
    samples = list(held_bytes(memory, simulation.run.chunks[stage], passes))
    highest = max(range(len(samples)), key=lambda k: samples[k][1])
    for k, (at, held) in enumerate(samples):
        if k in (0, highest) or cut.drawn(passes[k - 1].microbatch, share):
            yield events.counter(MEMORY, process_of(stage), at, {"bytes": round(held)})
