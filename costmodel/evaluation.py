"""What the cost model says about one layout: frozen results of ``costmodel.step``."""

from collections.abc import Mapping
from dataclasses import dataclass

from costmodel.layout.values import Layout, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class StageMemory:
    """Peak bytes of one chip of a stage; ``peak`` is the sum of the terms above it."""

    weights: float
    gradients: float
    optimizer: float
    activations: float
    transient: float
    fixed: float
    capacity: float

    @property
    def peak(self) -> float:
        """Largest simultaneous use, bytes."""
        static = self.weights + self.gradients + self.optimizer
        return static + self.activations + self.transient + self.fixed

    @property
    def missing(self) -> float:
        """Bytes by which the stage does not fit; 0 when it fits."""
        return max(0.0, self.peak - self.capacity)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTime:
    """Seconds of one stage. Per micro-batch: forward_s, backward_s and their exposed parts;
    sharded_weights_s comes on top (ZeRO 2 and 3), sharded_forward_s of it in the forward.

    Per step: end_s when its last backward ends, sync_s and optimizer_s exposed after it, finish_s
    when it is done with the step.
    """

    forward_s: float
    backward_s: float
    tp_s: float
    cp_s: float
    ep_s: float
    sharded_weights_s: float
    sharded_forward_s: float
    end_s: float
    wait_s: float
    sync_s: float
    optimizer_s: float
    finish_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StageEvaluation:
    """One stage of one pipeline."""

    stage: Stage
    time: StageTime
    memory: StageMemory
    in_flight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Prediction for one layout.

    step_time_s: optimizer step to optimizer step. breakdown: seconds of the step seen from the
    stage that finishes last; the values sum to ``step_time_s``. stages: one tuple per pipeline.
    model_flop: arithmetic of the step without recomputation, causal attention at half.
    """

    layout: Layout
    step_time_s: float
    breakdown: Mapping[str, float]
    stages: tuple[tuple[StageEvaluation, ...], ...]
    last: tuple[int, int]
    model_flop: float
    peak_flop_per_s: float
    num_chips: int
    tokens: int

    @property
    def fits(self) -> bool:
        """Whether every stage fits its chips' memory."""
        return all(s.memory.missing <= 0 for p in self.stages for s in p)

    @property
    def missing_bytes(self) -> float:
        """Most bytes missing on one chip."""
        return max(s.memory.missing for p in self.stages for s in p)

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of the whole job."""
        return self.tokens / self.step_time_s

    @property
    def tflops_per_chip(self) -> float:
        """Model TFLOP/s per chip used."""
        return self.model_flop / self.step_time_s / self.num_chips / 1e12

    @property
    def mfu(self) -> float:
        """Model FLOPs over the dense peak of the chips used, in the job's precision."""
        return self.model_flop / self.step_time_s / self.peak_flop_per_s
