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
    sequence_parallel, shards_optimizer, fully_sharded: where not stated. expert_tp: experts are
        split over tp where the expert tensor parallelism is not stated, else whole.
    recomputes_to_fit: where recomputation is not stated, it is what the memory needs, else none.
    layer_recompute: share of a layer's forward that "selective" repeats; 0 what ``StageOption``
        means by it.
    causal_flop: causal attention counts half in published TFLOP/s and MFU; recompute_flop: what
        full recomputation repeats counts too.
    rank: whose memory is printed: of the first stage, of the last, or of the worst.
    allocated: it is what PyTorch's allocator handed out, without context and communicator
        buffers. byte_factor: bytes of the printed unit over those that the case took it for.
    deterministic: with ``CUBLAS_WORKSPACE_CONFIG=:4096:8``.
    transformer_engine: products by Transformer Engine, which has a workspace of its own.
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
    expert_tp: bool = True
    recomputes_to_fit: bool = True
    layer_recompute: float = 0.0
    causal_flop: bool = True
    recompute_flop: bool = False
    rank: str = WORST_RANK
    allocated: bool = True
    byte_factor: float = 1.0
    deterministic: bool = False
    transformer_engine: bool = False

    def workspace_bytes(self, chip: str) -> float:
        """Allocated beside weights and activations by the matrix libraries.

        PyTorch takes one workspace for the forward's and one for the backward's thread: 8 x 4 MiB
        when deterministic and from Hopper on, else 8.125 MiB (``aten/src/ATen/cuda``,
        ``CublasHandlePool.cpp``). Transformer Engine takes 32 MiB, 4 MiB before Hopper
        (``transformer_engine/pytorch/module/base.py``).
        """
        older = chip.startswith(_OLDER)
        blas = 8.125 * MIB if older and not self.deterministic else 32.0 * MIB
        engine = (4.0 if older else 32.0) * MIB if self.transformer_engine else 0.0
        return 2.0 * blas + engine


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
    if "16-bit grad" in precision:
        return replace(how, gradient_bytes=2)
    return replace(how, gradient_bytes=4) if "fp32 grad" in precision else how


def _megatron_ci(case: Case, how: Convention) -> Convention:
    """What the test's name and size say of its ``model_config.yaml``.

    Small tests name ``--attention-backend unfused``, except those that resume a checkpoint with
    Transformer Engine (its own choice, a fused one) and those with context parallelism (``flash``,
    and no dropout). Without Transformer Engine the core is never fused. Tests called
    nondeterministic leave the workspace at its default.
    """
    name, cp = case.model.word("name"), case.parallel.size("cp") or 1
    engine = "_te_" in name or not case.model.flag("toy")
    chosen = not case.model.flag("toy") or "resume" in name or cp > 1
    return replace(
        how,
        fused_attention=engine and chosen,
        dropout=cp == 1,
        deterministic="nondeterministic" not in name,
        transformer_engine=engine,
    )
