"""What traffic costs, linear in its bytes: probed once from the evaluator's own formulas."""

from dataclasses import dataclass, field

import numpy as np

from costmodel.layout.values import StageOption
from costmodel.model.placement import Collective
from costmodel.network.phases import Side, phase_seconds
from costmodel.network.transfers import transfer_seconds
from costmodel.problem import Problem
from planner.arrays import FloatArray

PROBE_BYTES = 1e9

Ring = tuple[str, int, int, Collective]
"""Pool, ranks, chips between two ranks, and which half of an all-reduce."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Links:
    """Latency and seconds per byte.

    hop_base, hop_slope: of a hand-over between each two pools, (K, K). halves: of half an
    all-reduce inside one pool, filled as it is asked for.
    """

    problem: Problem
    hop_base: FloatArray
    hop_slope: FloatArray
    halves: dict[Ring, tuple[float, float]] = field(default_factory=dict[Ring, tuple[float, float]])

    def half(self, ring: Ring) -> tuple[float, float]:
        """Latency and seconds per byte of half an all-reduce."""
        if ring not in self.halves:
            none, much = (self._seconds(ring, size) for size in (0.0, PROBE_BYTES))
            self.halves[ring] = none, (much - none) / PROBE_BYTES
        return self.halves[ring]

    def _seconds(self, ring: Ring, size: float) -> float:
        pool, ranks, stride, collective = ring
        side = Side(pool=pool, ranks=ranks, stride=stride, payload_bytes=size)
        return phase_seconds(self.problem.cluster, [side], collective)[pool]


def links_of(problem: Problem, pools: tuple[str, ...]) -> Links:
    """The links between these pools and inside them."""
    base = np.zeros((len(pools), len(pools)))
    slope = np.zeros_like(base)
    for i, sender in enumerate(pools):
        for k, receiver in enumerate(pools):
            none, much = (_hop(problem, sender, receiver, size) for size in (0.0, PROBE_BYTES))
            base[i, k], slope[i, k] = none, (much - none) / PROBE_BYTES
    return Links(problem=problem, hop_base=base, hop_slope=slope)


def _hop(problem: Problem, sender: str, receiver: str, size: float) -> float:
    ends = StageOption(pool=sender), StageOption(pool=receiver)
    return transfer_seconds(problem.cluster, *ends, size, size, problem.efficiency)
