"""Event simulation of any schedule in plain Python, driven by its lists of passes alone."""

import numpy as np

from costmodel.schedules.kind import FloatArray, Pass, Phase, Route, ScheduleKind
from costmodel.schedules.passes import passes_of, routes_of
from costmodel.schedules.replay import Seconds

Event = tuple[str, int, int]
"""What has been made, where (place) and for which micro-batch."""


class SlowTwin:
    """One stage after the other runs as far as it can, until all lists are empty."""

    def __init__(
        self, kind: ScheduleKind, routes: tuple[Route, ...], seconds: Seconds, m: int, chunks: int
    ) -> None:
        self.routes, self.seconds, self.m = routes, seconds, m
        self.p = 1 + max(stage for route in routes for stage, _ in route)
        self.todo = [list(passes_of(kind, self.p, i, m, chunks)) for i in range(self.p)]
        self.clock, self.busy = [0.0] * self.p, [0.0] * self.p
        self.made: dict[Event, float] = {}

    def run(self) -> tuple[float, list[float]]:
        """Makespan and end of each stage."""
        while any(self.todo):
            before = sum(len(row) for row in self.todo)
            for stage in range(self.p):
                while self.todo[stage] and self._run_next(stage):
                    pass
            assert sum(len(row) for row in self.todo) < before, "the stages wait for each other"
        return max(self.clock), self.clock

    def _run_next(self, stage: int) -> bool:
        row = self.todo[stage]
        group = row[: 2 if len(row) > 1 and row[1].beside else 1]
        ready = [self._ready(stage, one) for one in group]
        if None in ready:
            return False
        begin = max(self.clock[stage], *(r for r in ready if r is not None))
        took = self._took(stage, group)
        self.clock[stage], self.busy[stage] = begin + took, self.busy[stage] + took
        for one in group:
            name = {Phase.FORWARD: "y", Phase.WEIGHT: "w"}.get(one.phase, "dx")
            self.made[name, self._place(stage, one), one.microbatch] = begin + took
        del row[: len(group)]
        return True

    def _place(self, stage: int, one: Pass) -> int:
        way = one.microbatch * len(self.routes) // self.m
        return way * len(self.routes[0]) + self.routes[way].index((stage, one.chunk))

    def _ready(self, stage: int, one: Pass) -> float | None:
        place, k, length = self._place(stage, one), one.microbatch, len(self.routes[0])
        if one.phase is Phase.WEIGHT:
            return self.made.get(("dx", place, k))
        if one.phase is Phase.FORWARD:
            if place % length == 0:
                return 0.0
            return self._after(("y", place - 1, k), self.seconds.up_s[place - 1])
        if place % length == length - 1:
            return self.made.get(("y", place, k))
        return self._after(("dx", place + 1, k), self.seconds.down_s[place])

    def _after(self, event: Event, hop_s: float) -> float | None:
        return self.made[event] + float(hop_s) if event in self.made else None

    def _took(self, stage: int, group: list[Pass]) -> float:
        s, moving, computing = self.seconds, 0.0, 0.0
        for one in group:
            place = self._place(stage, one)
            alone = {
                Phase.FORWARD: s.forward_s[place],
                Phase.BACKWARD: s.backward_s[place],
                Phase.INPUT: s.backward_s[place] - s.weight_s[place],
                Phase.WEIGHT: s.weight_s[place],
            }[one.phase]
            exchange = (s.forward_ep_s if one.phase is Phase.FORWARD else s.backward_ep_s)[place]
            moving, computing = moving + float(exchange), computing + float(alone - exchange)
        return max(moving, computing) if len(group) > 1 else float(moving + computing)


def event_simulation(
    kind: ScheduleKind,
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> tuple[float, list[float]]:
    """Stages with alike chunks and weight gradients as half of the backward."""
    p = len(forward_s)
    chunks = kind.program.chunks if kind.program else 1
    routes = routes_of(kind, p, chunks)
    share = len(routes[0]) // p
    visited = [stage for route in routes for stage, _ in route]
    following = [
        (a, b)
        for route in routes
        for (a, _), (b, _) in zip(route, route[1:] + route[-1:], strict=True)
    ]
    up, down = (
        [0.0 if a == b else float(hops[min(a, b)]) for a, b in following]
        for hops in (p2p_forward_s, p2p_backward_s)
    )
    seconds = Seconds(
        forward_s=forward_s[visited] / share,
        backward_s=backward_s[visited] / share,
        weight_s=backward_s[visited] / share / 2,
        up_s=np.array(up),
        down_s=np.array(down),
        forward_ep_s=0.0 * forward_s[visited],
        backward_ep_s=0.0 * forward_s[visited],
    )
    return SlowTwin(kind, routes, seconds, microbatches, chunks).run()
