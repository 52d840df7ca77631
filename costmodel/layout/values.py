"""A layout: which layers run where, split how. Frozen values; rules are in ``rules``.

Terms as in the glossary of ``docs/architecture.md``.
"""

from dataclasses import dataclass, field

NO_RECOMPUTE = "none"
NO_OFFLOAD = "none"
OFFLOAD_MODES = (NO_OFFLOAD, "optimizer", "activations", "both")
"""What a stage keeps in its host's memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOption:
    """How one stage runs, apart from which layers it holds.

    pool: name of the pool whose chips it uses.
    tp, cp: tensor and context parallel degrees. sequence_parallel: the residual stream between
        tp regions is split by tokens over tp.
    ep, etp: expert parallel and expert tensor parallel degrees, folded over tp x cp x replicas:
        ep * etp divides tp * cp * replicas.
    replicas: data parallelism inside the stage.
    micro_batch_size: sequences per replica and micro-batch.
    zero: 0 nothing sharded, 1 optimizer, 2 and gradients, 3 and weights, over the
        data-parallel ranks (all pipelines) times cp.
    recompute: ``none``, ``selective`` (outputs of norms and activation functions are dropped and
        computed again) or ``full`` (only block inputs are kept).
    offload: what is kept in the host's memory: ``none``, ``optimizer`` (state, updated there),
        ``activations`` (kept for the backward) or ``both``.
    """

    pool: str
    tp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    replicas: int = 1
    micro_batch_size: int = 1
    sequence_parallel: bool = True
    zero: int = 1
    recompute: str = NO_RECOMPUTE
    offload: str = NO_OFFLOAD

    @property
    def num_chips(self) -> int:
        """Chips of one stage instance."""
        return self.tp * self.cp * self.replicas

    @property
    def samples(self) -> int:
        """Sequences that the stage processes per micro-batch over all replicas."""
        return self.micro_batch_size * self.replicas

    @property
    def optimizer_on_host(self) -> bool:
        """Whether the optimizer's state is in the host's memory."""
        return self.offload in ("optimizer", "both")

    @property
    def activations_on_host(self) -> bool:
        """Whether activations wait for the backward in the host's memory."""
        return self.offload in ("activations", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of a pipeline: an option and half-open layer ranges (several when interleaved)."""

    option: StageOption
    chunks: tuple[tuple[int, int], ...]
    embedding: bool = False
    head: bool = False
    mtp: int = 0

    @property
    def layers(self) -> tuple[int, ...]:
        """Layer indices that the stage holds."""
        return tuple(layer for start, stop in self.chunks for layer in range(start, stop))

    @property
    def num_layers(self) -> int:
        """Number of layers that the stage holds."""
        return sum(stop - start for start, stop in self.chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Stages that hold the whole model once; ``count`` identical copies run side by side.

    microbatches: micro-batches that each copy runs per step.
    """

    stages: tuple[Stage, ...]
    microbatches: int
    count: int = 1

    @property
    def samples(self) -> int:
        """Sequences per micro-batch of one copy (equal on all stages of a legal layout)."""
        return self.stages[0].option.samples

    def chips(self, pool: str) -> int:
        """Chips of ``pool`` that one copy uses."""
        return sum(s.option.num_chips for s in self.stages if s.option.pool == pool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Order of forwards and backwards: a registered kind and its virtual stages per stage."""

    kind: str = "1f1b"
    virtual_stages: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A multiset of pipelines plus the schedule."""

    pipelines: tuple[Pipeline, ...]
    schedule: Schedule = field(default_factory=Schedule)

    @property
    def samples(self) -> int:
        """Sequences per step over all pipelines; equals the job's global batch size when legal."""
        return sum(p.count * p.microbatches * p.samples for p in self.pipelines)

    @property
    def num_chips(self) -> int:
        """Chips that the layout uses."""
        return sum(p.count * s.option.num_chips for p in self.pipelines for s in p.stages)
