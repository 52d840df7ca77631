"""What a source's memory figure would be of one prediction: whose, of what, and what lives beside.

The cost model knows what one step needs. Sources print more or less than that: what PyTorch's
allocator handed out, what it reserved from the driver, or all of the card that is in use.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from costmodel.calibration.convention import FIRST_RANK, LAST_RANK, Convention
from costmodel.calibration.prepare import Prepared
from costmodel.evaluation import Evaluation, StageEvaluation, StageMemory

HOST_BOUND = 2.0**0.5
"""Forward time over the host's where the device's is as long (``block_costs.at_least``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Bytes of the rank that the source shows, before what the stack's figure adds.

    static: what lasts between steps. lasting, working: what lasts for a step, and what comes and
    goes within it, at the peak. held: let go when memory runs out. room: of the chip beside the
    context.
    """

    static: float
    lasting: float
    working: float
    held: float
    room: float

    @property
    def needed(self) -> float:
        """Largest use without what is merely held."""
        return self.lasting + self.working


def seen(prepared: Prepared, evaluations: Sequence[tuple[Evaluation, float]]) -> Seen:
    """The figures of a case, mixed where a part of the layers recomputes."""
    shares = _shares(prepared, evaluations)
    parts = [_of_rank(prepared, evaluation) for evaluation, _ in evaluations]

    def mean(name: str) -> float:
        return sum(share * getattr(part, name) for part, share in zip(parts, shares, strict=True))

    return Seen(**{field.name: mean(field.name) for field in fields(Seen)})


def _shares(prepared: Prepared, evaluations: Sequence[tuple[Evaluation, float]]) -> list[float]:
    """Shares of the layouts in a memory figure, which may differ from those in a time."""
    kept = prepared.how.layer_kept if len(evaluations) == 2 else 0.0
    return [kept, 1.0 - kept] if kept else [share for _, share in evaluations]


def shortfall(prepared: Prepared, evaluations: Sequence[tuple[Evaluation, float]]) -> float:
    """Largest share of a chip's usable memory that a stage lacks; 0 where the case fits.

    Without the activations of a case whose activations go to the host as far as they do not fit.
    """
    shares = _shares(prepared, evaluations)
    stages = [[s for pipeline in e.stages for s in pipeline] for e, _ in evaluations]
    offloads = prepared.offloads

    def use(memory: StageMemory) -> float:
        return memory.peak - (memory.activations if offloads else 0.0)

    lacks = (
        sum(share * use(one.memory) for share, one in zip(shares, alike, strict=True))
        / alike[0].memory.capacity
        - 1.0
        for alike in zip(*stages, strict=True)
    )
    return max(0.0, *lacks)


def _of_rank(prepared: Prepared, evaluation: Evaluation) -> Seen:
    """The figures of the rank that the stack prints: first, last, or the fullest one's."""
    stages = [stage for pipeline in evaluation.stages for stage in pipeline]
    shown = {FIRST_RANK: stages[:1], LAST_RANK: stages[-1:]}.get(prepared.how.rank, stages)
    found = [_of_stage(prepared, evaluation, stage) for stage in shown]
    fullest = max(found, key=lambda one: one.needed + one.held)
    return replace(fullest, static=max(one.static for one in found))


def _of_stage(prepared: Prepared, evaluation: Evaluation, stage: StageEvaluation) -> Seen:
    how, memory = prepared.how, stage.memory
    static = memory.weights + memory.gradients + memory.optimizer
    beside = _beside(prepared, memory)
    buckets = how.bucket_bytes * _parameters(prepared, memory) if _is_replicated(stage) else 0.0
    chip = prepared.problem.cluster.pool(stage.stage.option.pool).chip
    return Seen(
        static=static + beside + _between_steps(prepared, evaluation, stage),
        lasting=static + beside + buckets + _standing(prepared, evaluation, stage),
        working=_working(prepared, stage),
        held=_held(prepared, evaluation, stage),
        room=chip.memory() - memory.fixed,
    )


def _working(prepared: Prepared, stage: StageEvaluation) -> float:
    """Activations and short-lived buffers at the worst moment of a backward.

    At its start everything that a micro-batch keeps and the largest buffers; at its end, where the
    stack gathers the backward's gradients before it adds them up, those and what the other
    micro-batches keep.
    """
    memory = stage.memory
    start = memory.activations + memory.transient
    gradients = prepared.how.late_gradient_bytes * _parameters(prepared, memory)
    others = memory.activations * (1.0 - 1.0 / max(1, stage.in_flight))
    return max(start, others + gradients)


def _standing(prepared: Prepared, evaluation: Evaluation, stage: StageEvaluation) -> float:
    """Weights and gradients beyond their shards that stay whole between micro-batches."""
    option, memory = stage.stage.option, stage.memory
    if option.zero < 3 or len(evaluation.stages[0]) == 1 or not prepared.how.keeps_gathered:
        return 0.0
    return (memory.weights + memory.gradients) * (option.replicas * option.cp - 1.0)


def _parameters(prepared: Prepared, memory: StageMemory) -> float:
    return memory.weights / prepared.problem.job.weight_bytes


def _is_replicated(stage: StageEvaluation) -> bool:
    return stage.stage.option.replicas > 1


def _beside(prepared: Prepared, memory: StageMemory) -> float:
    """What counts beside model and activations: workspaces alone, or all that is fixed."""
    how = prepared.how
    if not how.counts_allocated:
        return memory.fixed
    return how.workspace_bytes(prepared.case.hardware.word("chip"))


def _hidden_bytes(prepared: Prepared, stage: StageEvaluation) -> float:
    """One 16-bit tensor of a micro-batch's tokens, whole over tp."""
    model, option = prepared.case.model, stage.stage.option
    tokens = option.micro_batch_size * model.need("seq") / option.cp
    return 2.0 * model.need("hidden") * tokens


def _between_steps(prepared: Prepared, evaluation: Evaluation, stage: StageEvaluation) -> float:
    """The last tensors received: an input and an output's gradient for each chunk of a stage."""
    if not prepared.how.keeps_received or len(evaluation.stages[0]) == 1:
        return 0.0
    share = stage.stage.option.tp if stage.stage.option.sequence_parallel else 1
    return 2.0 * len(stage.stage.chunks) * _hidden_bytes(prepared, stage) / share


def _held(prepared: Prepared, evaluation: Evaluation, stage: StageEvaluation) -> float:
    """Whole outputs that tensor parallelism sums: two a layer of every micro-batch in flight.

    They wait where the host runs ahead of the device: without a pipeline to the end of the
    forward, and in one where the device is the slower.
    """
    if stage.stage.option.tp == 1 or not prepared.how.held_sums:
        return 0.0
    if len(evaluation.stages[0]) > 1 and not _device_is_slower(prepared, stage):
        return 0.0
    return 2.0 * stage.stage.num_layers * stage.in_flight * _hidden_bytes(prepared, stage)


def _device_is_slower(prepared: Prepared, stage: StageEvaluation) -> bool:
    model = prepared.problem.model
    ops = sum(
        len(model.blocks[model.layers[layer]].ops)
        for start, stop in stage.stage.chunks
        for layer in range(start, stop)
    )
    host_s = ops * prepared.problem.efficiency.host_op_s
    return stage.time.forward_s > HOST_BOUND * host_s


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConstants:
    """What a stack prints over what a step needs: lasting and working bytes, and beside them."""

    lasting: float = 1.0
    working: float = 1.0
    beside_bytes: float = 0.0


def figure(shown: Seen, constants: MemoryConstants) -> float:
    """The printed peak: ``min(f L + g W + c, max(room, L + W))``, with H as far as there is room.

    L lasting, W working, H held bytes; f, g, c of the stack: rounding and gaps in what the
    allocator holds, and what lives beside it.
    """
    use = constants.lasting * shown.lasting + constants.working * shown.working
    return min(use + constants.beside_bytes + shown.held, max(shown.room, shown.needed))


def constants_of(how: Convention) -> MemoryConstants:
    """Those of the stack's profile."""
    return MemoryConstants(
        lasting=how.memory_lasting,
        working=how.memory_working,
        beside_bytes=how.memory_beside_bytes,
    )
