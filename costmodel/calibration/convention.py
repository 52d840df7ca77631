"""What a training stack does unless a case says otherwise: the one rule for unstated settings.

The entries of each stack, with their sources, are the ``runs`` of its software profile.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from costmodel.calibration.case import Case
from costmodel.software.read import software_profile

MIB = float(2**20)
GIB = float(2**30)
FIRST_RANK, LAST_RANK, WORST_RANK = "first", "last", "worst"
ALLOCATED, RESERVED, CARD = "allocated", "reserved", "card"

NULL_TOKENIZER_VOCAB = 131073
"""Of Megatron-LM's large tests (``gpt3_7b_tp1_pp4_memory_speed/model_config.yaml``)."""

GROUPED = ("groupedgemm", "gpt3_moe", "etp1_ep4")
"""In the names of Megatron-LM's tests with ``--moe-grouped-gemm``."""

_OLDER = ("nvidia-v100", "nvidia-a100", "nvidia-a800")
"""Chips before Hopper, for which the libraries below take smaller workspaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """How a stack completes and measures a case.

    fused_attention: the attention core is one kernel that stores no scores.
    dropout: on the residual branches and, if the core is not fused, on the scores.
    fused_gate: a gated activation is one kernel (otherwise its inner result is kept too).
    learned_positions: for models that are not gated. vocab: where it is not stated.
    tied: input and output embedding are one, where not stated.
    vocab_divisor: padding of the vocabulary over tp.
    logit_bytes: largest bytes alive per logit during the loss.
    fused_gradients: as in ``Efficiency``. gradient_bytes: of an accumulated gradient.
    split_by_work: layers are spread over the stages by their weights and the head's, so that a
        stage ends with the layer that passes its share; else evenly.
    held_sums: the whole outputs that tensor parallelism sums stay allocated until the device has
        summed them, and the host runs ahead of it: without a pipeline, whose hand-overs wait, to
        the end of the forward.
    sequence_parallel, shards_optimizer, fully_sharded: where not stated. sharded_zero: the ZeRO
        stage that a sharded optimizer is. expert_tp: experts are
        split over tp where the expert tensor parallelism is not stated, else whole.
    recomputes_to_fit: where recomputation is not stated, it is what the memory needs, else none.
    offloads_to_fit: where it is not stated and all is sharded, activations that do not fit go to
        the host's memory, hidden behind compute.
    layer_recompute, layer_kept: share of a layer's forward that "selective" repeats, and of its
        activations that it keeps; 0 what ``StageOption`` means by it.
    keeps_gathered: weights stay whole in a pipeline once gathered, and gradients until the last
        micro-batch, though fully sharded.
    causal_flop: causal attention counts half in published TFLOP/s and MFU; recompute_flop: what
        full recomputation repeats counts too.
    rank: whose memory is printed: of the first stage, of the last, or of the worst.
    memory: what is printed: what PyTorch's allocator handed out (``allocated``, without context
        and communicator buffers), what it took from the driver (``reserved``), or all that is in
        use on the card (``card``). memory_lasting, memory_working, memory_beside_bytes: the
        stack's ``memory_seen.MemoryConstants``. byte_factor: bytes of the printed unit over those
        that the case took it for.
    bucket_bytes: a parameter's, in the buckets of PyTorch's DistributedDataParallel.
    late_gradient_bytes: a parameter's, until a backward's end adds up what it made.
    keeps_received: the last tensors from the neighbours in a pipeline outlive the step.
    deterministic: with ``CUBLAS_WORKSPACE_CONFIG=:4096:8``.
    transformer_engine: products by Transformer Engine, which has a workspace of its own.
    grouped_experts: grouped products by it, which run on four streams with a workspace each.
    """

    fused_attention: bool = True
    dropout: bool = False
    fused_gate: bool = True
    learned_positions: bool = False
    vocab: int | None = None
    tied: bool = False
    vocab_divisor: int = 128
    logit_bytes: float = 8.0
    fused_gradients: bool = True
    gradient_bytes: int = 4
    split_by_work: bool = False
    held_sums: bool = False
    sequence_parallel: bool = True
    shards_optimizer: bool = True
    fully_sharded: bool = False
    sharded_zero: int = 1
    expert_tp: bool = True
    recomputes_to_fit: bool = True
    offloads_to_fit: bool = False
    layer_recompute: float = 0.0
    layer_kept: float = 0.0
    keeps_gathered: bool = False
    causal_flop: bool = True
    recompute_flop: bool = False
    rank: str = WORST_RANK
    memory: str = ALLOCATED
    memory_lasting: float = 1.0
    memory_working: float = 1.0
    memory_beside_bytes: float = 0.0
    byte_factor: float = 1.0
    bucket_bytes: float = 0.0
    late_gradient_bytes: float = 0.0
    keeps_received: bool = False
    deterministic: bool = False
    transformer_engine: bool = False
    grouped_experts: bool = False

    @property
    def counts_allocated(self) -> bool:
        """Whether the printed memory leaves out context and communicator buffers."""
        return self.memory != CARD

    def workspace_bytes(self, chip: str) -> float:
        """Allocated beside weights and activations by the matrix libraries.

        PyTorch takes one workspace for the forward's and one for the backward's thread: 8 x 4 MiB
        when deterministic and from Hopper on, else 8.125 MiB (``aten/src/ATen/cuda``,
        ``CublasHandlePool.cpp``). Transformer Engine takes 32 MiB, 4 MiB before Hopper
        (``transformer_engine/pytorch/module/base.py``), and as much again for each of the four
        streams of grouped products (``cpp_extensions/gemm.py``).
        """
        older = chip.startswith(_OLDER)
        blas = 8.125 * MIB if older and not self.deterministic else 32.0 * MIB
        engine = (4.0 if older else 32.0) * MIB if self.transformer_engine else 0.0
        return 2.0 * blas + (1.0 + 4.0 * self.grouped_experts) * engine


@cache
def stack_convention(stack: str) -> Convention:
    """The convention in a stack's software profile; that of the default one if it has none."""
    runs: dict[str, Any] = dict(software_profile(stack).runs)
    return Convention(**runs)


MEGATRON_2021 = stack_convention("megatron-2021")
MEGATRON_CI = stack_convention("megatron-ci")
NANOTRON = stack_convention("nanotron")


def convention(case: Case) -> Convention:
    """The convention of the case's stack, and what else the case says of it."""
    how = stack_convention(case.stack)
    if case.stack == "megatron-ci":
        how = _megatron_ci(case, how)
    precision = case.parallel.text("precision")
    if "16-bit grad" in precision or "o2" in precision.split():
        return replace(how, gradient_bytes=2)
    return replace(how, gradient_bytes=4) if "fp32 grad" in precision else how


def _megatron_ci(case: Case, how: Convention) -> Convention:
    """What the test's name and size say of its ``model_config.yaml``.

    Small tests name ``--attention-backend unfused``, except those that resume a checkpoint with
    Transformer Engine (its own choice, a fused one) and those with context parallelism (``flash``,
    and no dropout). Without Transformer Engine the core is never fused. Tests of dense models
    called nondeterministic leave the workspace at its default. Large dense tests name
    ``--tokenizer-type NullTokenizer --vocab-size 131073`` and untie the embeddings.
    """
    name, cp = case.model.word("name").lower(), case.parallel.size("cp") or 1
    toy, experts = bool(case.model.flag("toy")), bool(case.model.size("experts"))
    engine = "_te_" in name or not toy
    chosen = not toy or "resume" in name or cp > 1
    how = replace(
        how,
        fused_attention=engine and chosen,
        dropout=cp == 1 and case.model.sub("mla") is None,
        deterministic=experts or "nondeterministic" not in name,
        transformer_engine=engine,
        grouped_experts=experts and any(word in name for word in GROUPED),
    )
    return how if toy or experts else replace(how, vocab=NULL_TOKENIZER_VOCAB, tied=False)
