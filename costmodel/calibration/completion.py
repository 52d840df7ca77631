"""The one rule by which a case that leaves something open is completed; each use is recorded.

What depends on the stack (recomputation, sharding, sequence parallelism, vocabulary) is in
``convention``; here is what follows from the other settings of the case.
"""

from dataclasses import dataclass, field
from math import gcd

from costmodel.calibration.case import Case, UnscorableError
from costmodel.calibration.convention import Convention

LATENT_RANKS = {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
"""Of DeepSeek-V3 and Kimi-K2 (their ``config.json``)."""

LATENT_MODELS = ("deepseek-v3", "deepseek v3", "deepseekv3", "kimi")

VOCABULARIES = (
    ("llama3", 128256),
    ("llama-3", 128256),
    ("llama", 32000),
    ("baichuan", 64000),
    ("internlm", 103168),
    ("qwen", 151936),
    ("yi", 64000),
    ("chatglm3", 65024),
    ("glm-4", 151552),
    ("mixtral", 32000),
)
"""Beginning of a model's name -> vocabulary in the family's ``config.json``; first match counts."""

MICROBATCHES_PER_STAGE = 8
"""Micro-batches for each stage of a pipeline whose batch size is not stated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A case with what it left open filled in, and the sentences that say so."""

    case: Case
    assumptions: list[str] = field(default_factory=list[str])


def completed(case: Case, how: Convention) -> Completed:
    """The completed case. Raises UnscorableError when its layout is not stated at all."""
    result = Completed(case=case)
    for rule in (_sharding, _model, _experts):
        result = rule(result, how)
    return _batch(_micro_batch(result))


def _filled(done: Completed, section: str, sentence: str, **values: object) -> Completed:
    return Completed(
        case=done.case.with_values(section, **values),
        assumptions=[*done.assumptions, sentence],
    )


def _sharding(done: Completed, how: Convention) -> Completed:
    """Without any degree a stack that shards fully is taken to do just that."""
    parallel = done.case.parallel
    degree = parallel.size("fsdp") or 0
    if degree > 0 and parallel.flag("fsdp") is None:
        return _with_sharding(done, degree)
    if any(parallel.size(key) for key in ("tp", "pp", "dp", "fsdp")) or parallel.flag("fsdp"):
        return done
    if not how.fully_sharded:
        raise UnscorableError("layout not stated")
    return _filled(done, "parallel", "layout not stated: fully sharded", fsdp=True)


def _with_sharding(done: Completed, degree: int) -> Completed:
    """A number says over how many chips (1 may only mean that it is on)."""
    case, note = done.case.with_values("parallel", fsdp=True), list(done.assumptions)
    chips = case.hardware.need("n_chips")
    model_parallel = 1
    for key in ("tp", "pp", "cp"):
        model_parallel *= case.parallel.size(key) or 1
    if degree > 1 and model_parallel * degree < chips:
        note.append("replicas of the shards: priced as sharded over all of them")
    return Completed(case=case, assumptions=note)


def _model(done: Completed, how: Convention) -> Completed:
    model = done.case.model
    name = model.word("name").lower()
    latent = "mla" in name or "MLA" in model.word("attention") or name.startswith(LATENT_MODELS)
    if latent and model.sub("mla") is None and name.startswith(LATENT_MODELS):
        done = _filled(done, "model", "latent ranks as published for the model", mla=LATENT_RANKS)
    if not model.size("vocab") and how.vocab is None:
        size = next((size for start, size in VOCABULARIES if name.startswith(start)), None)
        if size is not None:
            note = f"vocabulary not stated: {size} as the model family's"
            done = _filled(done, "model", note, vocab=size)
    if model.size("experts") and not model.size("topk"):
        done = _filled(done, "model", "experts per token not stated: 2", topk=2)
    return done


def _experts(done: Completed, how: Convention) -> Completed:
    """Experts spread over as many chips of a stage as divide them, inside one scale-up domain."""
    case = done.case
    experts = case.model.size("experts")
    if not experts or case.parallel.size("ep"):
        return done
    fixed = (case.parallel.size("tp") or 1) * (case.parallel.size("pp") or 1)
    chips = max(1, case.hardware.need("n_chips") // fixed)
    domain = case.hardware.size("scale_up_domain") or case.hardware.size("chips_per_node") or 8
    if how.fully_sharded or case.parallel.flag("fsdp"):
        domain = 1
    ep = gcd(gcd(chips, experts), 64 if domain > 8 else domain)
    return _filled(done, "parallel", f"expert parallelism not stated: {ep}", ep=ep)


def _micro_batch(done: Completed) -> Completed:
    """A fully sharded replica runs its batch at once; else one sequence at a time."""
    case = done.case
    if case.parallel.size("mbs"):
        return done
    batch = case.parallel.size("gbs")
    whole = case.parallel.flag("fsdp") and (case.parallel.size("pp") or 1) == 1
    replicas = _replicas(case)
    size = max(1, batch // replicas) if whole and batch else 1
    return _filled(done, "parallel", f"micro-batch size not stated: {size}", mbs=size)


def _batch(done: Completed) -> Completed:
    """Eight micro-batches a stage for a pipeline, one otherwise."""
    case = done.case
    if case.parallel.size("gbs"):
        return done
    stages = case.parallel.size("pp") or 1
    count = MICROBATCHES_PER_STAGE * stages if stages > 1 else 1
    size = count * _replicas(case) * case.parallel.need("mbs")
    return _filled(done, "parallel", f"batch size not stated: {count} micro-batches", gbs=size)


def _replicas(case: Case) -> int:
    degrees = 1
    for key in ("tp", "pp", "cp"):
        degrees *= case.parallel.size(key) or 1
    return max(1, case.hardware.need("n_chips") // degrees)
