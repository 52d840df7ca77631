"""The passes of a stage as slices: computing first, then the communication that it waits for.

The evaluator knows how much of a pass is communication, not when: within a pass it is drawn after
the computing. Of two passes side by side the forward's computing comes first, and what they hide
of their exchanges is drawn beside it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from costmodel.pipeline_run import PipelineRun
from costmodel.schedules.kind import Phase
from costmodel.schedules.replay import ABSENT
from costmodel.stage.chunks import ChunkCosts
from planner.trace.events import ns

LETTERS = {Phase.FORWARD: "F", Phase.BACKWARD: "B", Phase.INPUT: "B", Phase.WEIGHT: "W"}
WORDS = {
    Phase.FORWARD: "forward",
    Phase.BACKWARD: "backward",
    Phase.INPUT: "backward of inputs",
    Phase.WEIGHT: "weight gradients",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """One pass. Spans in nanoseconds: all of it, its computing, and communication by kind.

    place: its place along the ways. Spans of communication in ``hidden`` overlap computing.
    """

    stage: int
    phase: Phase
    chunk: int
    microbatch: int
    place: int
    span: tuple[int, int]
    computing: tuple[int, int]
    waiting: tuple[tuple[str, int, int], ...]
    hidden: tuple[tuple[str, int, int], ...]

    @property
    def name(self) -> str:
        """As on the slice: ``F 3``."""
        return f"{LETTERS[self.phase]} {self.microbatch}"


def drawn_passes(run: PipelineRun, stage: int) -> Iterator[Drawn]:
    """The stage's passes in order."""
    rows: list[list[int]] = run.lists.passes[stage].tolist()
    starts: list[float] = run.times.start_s[stage].tolist()
    ends: list[float] = run.times.end_s[stage].tolist()
    chunk_of: list[int] = [nth for route in run.seconds.routes for _, nth in route]
    k = 0
    while k < len(rows) and rows[k][0] != ABSENT:
        pair = k + 1 < len(rows) and rows[k + 1][3] == 1
        at, exchanged = starts[k], starts[k]
        for phase, place, microbatch, _ in rows[k : k + 2 if pair else k + 1]:
            kind, chunk = Phase(phase), chunk_of[place]
            work = _work(run, stage, chunk, kind)
            hidden = work.hidden_s if pair else 0.0
            yield Drawn(
                stage=stage,
                phase=kind,
                chunk=chunk,
                microbatch=microbatch,
                place=place,
                span=(ns(starts[k]), ns(ends[k])),
                computing=(ns(at + work.overhead_s), ns(at + work.overhead_s + work.compute_s)),
                waiting=_after(at + work.overhead_s + work.compute_s, work.shown(beside=pair)),
                hidden=_after(exchanged, (("ep", hidden),) if hidden > 0.0 else ()),
            )
            at += work.overhead_s + work.compute_s + sum(s for _, s in work.shown(beside=pair))
            exchanged += hidden
        k += 2 if pair else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """Seconds of one pass."""

    overhead_s: float
    compute_s: float
    parts: tuple[tuple[str, float], ...]

    @property
    def hidden_s(self) -> float:
        """Exchanges that a pass beside another one hides."""
        return sum(seconds for kind, seconds in self.parts if kind == "ep")

    def shown(self, *, beside: bool) -> tuple[tuple[str, float], ...]:
        """Communication that the pass waits for."""
        return tuple(p for p in self.parts if p[1] > 0.0 and not (beside and p[0] == "ep"))


def _work(run: PipelineRun, stage: int, chunk: int, phase: Phase) -> _Work:
    costs, chunks = run.chunks[stage][chunk], run.seconds.chunks
    if phase is Phase.WEIGHT:
        return _Work(overhead_s=0.0, compute_s=costs.weight_gradient_s, parts=())
    if phase is Phase.FORWARD:
        extra = float(run.extra.forward_s[stage]) / chunks
        parts = _parts(costs, "forward", extra)
        compute = costs.forward_s - sum(s for _, s in parts) + extra
        return _Work(overhead_s=run.overhead_s, compute_s=compute, parts=parts)
    extra = float(run.extra.backward_s[stage]) / chunks
    parts = _parts(costs, "backward", extra)
    later = costs.weight_gradient_s if phase is Phase.INPUT else 0.0
    compute = costs.backward_s - later - sum(s for _, s in parts) + extra
    return _Work(overhead_s=0.0, compute_s=compute, parts=parts)


def _parts(costs: ChunkCosts, way: str, extra: float) -> tuple[tuple[str, float], ...]:
    kinds = ("tp", "cp", "ep")
    return (*((kind, getattr(costs, f"{way}_{kind}_s")) for kind in kinds), ("weights", extra))


def _after(at: float, parts: tuple[tuple[str, float], ...]) -> tuple[tuple[str, int, int], ...]:
    """The parts one after the other."""
    spans: list[tuple[str, int, int]] = []
    for kind, seconds in parts:
        spans.append((kind, ns(at), ns(at + seconds)))
        at += seconds
    return tuple(spans)
