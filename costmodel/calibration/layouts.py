"""The job and the uniform layout of a case."""

from itertools import pairwise
from math import floor

from costmodel.calibration.case import Section, UnscorableError
from costmodel.calibration.clusters import POOL
from costmodel.calibration.models import Reading
from costmodel.calibration.stated_schedule import Ways, schedule_of
from costmodel.job import PRECISIONS, Job
from costmodel.layout.split import dealt
from costmodel.layout.values import Layout, Pipeline, Stage, StageOption

UNSUPPORTED = {
    "muon": "optimizer Muon",
    "fsdp2": "FSDP2",
    "zp_z3": "Megatron FSDP",
    "distill": "distillation",
    "frozen": "frozen layers",
    "offloading": "activation offloading",
    "cudagraph": "CUDA graphs",
    "uneven_pipeline": "layer split not stated",
    "account_for_embedding": "layer split not stated",
    "multi_dist_optimizer": "shards over part of the replicas",
    "dsa": "sparse attention not stated",
}
"""Words in a case's name that say what it runs -> what is not modelled."""


def job_of(reading: Reading) -> Job:
    """Batch, sequence, precision. Raises UnscorableError where the case leaves them out."""
    case = reading.case
    for word, what in UNSUPPORTED.items():
        if word in case.model.word("name").lower().split(":")[-1]:
            raise UnscorableError(f"not modelled: {what}")
    return Job(
        global_batch_size=case.parallel.need("gbs"),
        sequence_length=case.model.need("seq"),
        precision=_precision(case.parallel),
        vocab_divisor=reading.convention.vocab_divisor,
        gradient_bytes=reading.convention.gradient_bytes,
    )


def _precision(parallel: Section) -> str:
    """The first that the text names: others in it are of gradients or of the optimizer."""
    stated = parallel.word("precision").lower()
    named = [(stated.index(name), name) for name in PRECISIONS if name in stated]
    if named:
        return min(named)[1]
    if stated:
        raise UnscorableError(f"precision {stated} not modelled")
    return "bf16"


def layout_of(reading: Reading, job: Job, num_layers: int) -> Layout:
    """Equal stages, one micro-batch count. Raises UnscorableError for what does not divide."""
    parallel, chips = reading.case.parallel, reading.case.hardware.need("n_chips")
    tp, pp, cp = (parallel.size(key) or 1 for key in ("tp", "pp", "cp"))
    if chips % (tp * pp * cp):
        raise UnscorableError("chips are not a multiple of tp pp cp")
    replicas = chips // (tp * pp * cp)
    if parallel.size("dp") not in (None, replicas):
        raise UnscorableError("chips differ from tp pp cp dp")
    size = parallel.need("mbs")
    microbatches, rest = divmod(job.global_batch_size, replicas * size)
    if rest or not microbatches:
        raise UnscorableError("batch is not a multiple of mbs dp")
    schedule, ways = schedule_of(parallel, microbatches)
    option = _option(reading, tp=tp, cp=cp, replicas=replicas, size=size)
    stages = _stages(option, _cuts(reading, num_layers, len(ways[0])), ways)
    pipeline = Pipeline(stages=stages, microbatches=microbatches)
    return Layout(pipelines=(pipeline,), schedule=schedule)


def _option(reading: Reading, *, tp: int, cp: int, replicas: int, size: int) -> StageOption:
    parallel = reading.case.parallel
    ep = parallel.size("ep") or 1
    experts = ep > 1 or reading.case.model.size("experts")
    etp = parallel.size("etp") or (tp if experts and reading.convention.expert_tp else 1)
    if (tp * cp * replicas) % (ep * etp):
        raise UnscorableError("chips of a stage are not a multiple of ep etp")
    return StageOption(
        pool=POOL,
        tp=tp,
        cp=cp,
        ep=ep,
        etp=etp,
        replicas=replicas,
        micro_batch_size=size,
        sequence_parallel=_sequence_parallel(reading, tp),
        zero=_zero(reading),
        recompute=_recompute(reading),
    )


def _sequence_parallel(reading: Reading, tp: int) -> bool:
    stated = reading.case.parallel.flag("seq_parallel")
    if stated is None and tp > 1:
        stated = reading.convention.sequence_parallel
        reading.assume(f"sequence parallelism not stated: {'on' if stated else 'off'}")
    return tp > 1 and stated is not False


def _zero(reading: Reading) -> int:
    parallel = reading.case.parallel
    if parallel.flag("fsdp"):
        return 3
    stated = parallel.size("zero")
    if stated is not None:
        return stated
    sharded = parallel.flag("optimizer_sharding")
    if sharded is None:
        sharded = reading.convention.shards_optimizer
        reading.assume(f"optimizer sharding not stated: {'on' if sharded else 'off'}")
    return 0 if sharded is False else reading.convention.sharded_zero


def _recompute(reading: Reading) -> str:
    """``full``; ``selective`` where norms or activations are named (not the attention core)."""
    text = reading.case.parallel.text("recompute")
    if not states_recompute(reading) and not recompute_is_open(reading):
        reading.assume("recomputation not stated: none")
    if text.startswith("full"):
        return "full"
    return "selective" if "norm" in text or "moe_act" in text else "none"


def recompute_is_open(reading: Reading) -> bool:
    """Whether the case leaves open what is recomputed, and the stack leaves that to memory."""
    how, custom = reading.convention, _is_custom(reading)
    return not states_recompute(reading) and (how.recomputes_to_fit or custom)


def states_recompute(reading: Reading) -> bool:
    """Whether the case says what is recomputed; "custom" does not."""
    return reading.case.parallel.values.get("recompute") is not None and not _is_custom(reading)


def _is_custom(reading: Reading) -> bool:
    return reading.case.parallel.text("recompute").startswith("custom")


def _cuts(reading: Reading, layers: int, parts: int) -> list[int]:
    """Ends of ``parts`` runs of layers."""
    if layers < parts <= layers + 2:
        reading.assume("embedding and head take the place of a layer each")
        return [0, *(min(max(part - 1, 0), layers) for part in range(1, parts)), layers]
    if layers < parts:
        raise UnscorableError("fewer layers than stages")
    if reading.convention.split_by_work and parts > 1:
        return _cuts_by_work(reading.case.model, layers, parts)
    size, more = divmod(layers, parts)
    if more:
        reading.assume("layers do not divide: the first stages hold one more")
    return [part * size + min(part, more) for part in range(parts + 1)]


def _cuts_by_work(model: Section, layers: int, parts: int) -> list[int]:
    """A stage takes layers until their work exceeds its share; the head counts as work at the end.

    Work: ``4 h^2 + 3 h f`` of a layer, ``h V`` of the head. The last stages may be left without
    layers.
    """
    hidden, ffn, vocab = (model.need(key) for key in ("hidden", "ffn_hidden", "vocab"))
    head = vocab / (4 * hidden + 3 * ffn)
    share = (layers + head) / parts
    return [0, *(min(floor(part * share) + 1, layers) for part in range(1, parts)), layers]


def _stages(option: StageOption, cuts: list[int], ways: Ways) -> tuple[Stage, ...]:
    counts = tuple(b - a for a, b in pairwise(cuts))
    first, last = {way[0][0] for way in ways}, {way[-1][0] for way in ways}
    return tuple(
        Stage(option=option, chunks=chunks, embedding=i in first, head=i in last)
        for i, chunks in enumerate(dealt(counts, ways))
    )
