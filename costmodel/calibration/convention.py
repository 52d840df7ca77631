"""What a training stack does unless a case says otherwise: the one rule for unstated settings.

Each entry says how the software of that stack runs the model, what its printed memory means and
where that can be read. Nothing here is fitted to the measured figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from costmodel.calibration.case import Case

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
    fused_gradients: as in ``Efficiency``.
    split_by_work: layers are spread over the stages by their weights and the head's, so that a
        stage ends with the layer that passes its share; else evenly.
    held_sums: the whole outputs that tensor parallelism sums stay allocated until the device has
        summed them, and the host runs ahead of it: without a pipeline, whose hand-overs wait, to
        the end of the forward.
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
    split_by_work: bool = False
    held_sums: bool = False
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


MEGATRON_2021 = Convention(
    fused_attention=False,
    dropout=True,
    learned_positions=True,
    vocab=51200,
    tied=True,
    logit_bytes=6.0,
)
"""Megatron-LM of SC21 (arXiv 2104.04473) and of Korthikanti et al. (arXiv 2205.05198): softmax
fused with its mask, scores stored, dropout 0.1, learned positions, tied embeddings. Of the loss
the 16-bit logits and one FP32 copy, changed in place, are alive
(``megatron/core/tensor_parallel/cross_entropy.py``)."""

MEGATRON_CI = replace(
    MEGATRON_2021,
    vocab=50257,
    rank=LAST_RANK,
    deterministic=True,
    fused_gradients=False,
    fused_attention=True,
    transformer_engine=True,
)
"""Megatron-LM's functional tests (``tests/functional_tests/test_cases/*/model_config.yaml``):
GPT-2's vocabulary, dropout at its default of 0.1, ``--no-gradient-accumulation-fusion``. Memory
is ``torch.cuda.memory_allocated`` as written to TensorBoard, hence by the last rank
(``megatron/training/global_vars.py``)."""

NANOTRON = Convention(
    fused_gate=False,
    fused_gradients=False,
    vocab_divisor=1,
    split_by_work=True,
    held_sums=True,
    rank=FIRST_RANK,
    byte_factor=GIB / 1e9,
)
"""nanotron: layers are spread by ``get_block_compute_costs`` and ``build_model``
(``src/nanotron/models``); rank 0 writes ``max_memory_allocated`` over 2^30 and calls the unit GB
(``src/nanotron/helpers.py``); the gated activation is two eager operations (``GLUActivation``);
the loss holds FP32 logits and their difference to the maximum, and row-parallel products hand
their whole output to a reduce-scatter (``src/nanotron/parallel/tensor_parallel/functional.py``),
whose input PyTorch keeps until its stream is done (``recordStream`` in ``ProcessGroupNCCL``)."""

_BY_STACK: Mapping[str, Convention] = MappingProxyType(
    {"megatron-2021": MEGATRON_2021, "nanotron": NANOTRON}
)


def convention(case: Case) -> Convention:
    """The convention of the case's stack; the defaults of ``Convention`` for an unknown one."""
    if case.stack == "megatron-ci":
        return _megatron_ci(case)
    return _BY_STACK.get(case.stack, Convention())


def _megatron_ci(case: Case) -> Convention:
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
        MEGATRON_CI,
        fused_attention=engine and chosen,
        dropout=cp == 1,
        deterministic="nondeterministic" not in name,
        transformer_engine=engine,
    )
