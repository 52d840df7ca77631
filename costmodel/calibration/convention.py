"""What a training stack does unless a case says otherwise: the one rule for unstated settings.

Each entry says how the software of that stack runs the model, what its printed memory means and
where that can be read. Nothing here is fitted to the measured figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from costmodel.calibration.case import Case

GIB = float(2**30)
WORKSPACE_BYTES = 2.0 * 32 * 2**20
"""Allocated beside weights and activations: the matrix library's workspaces of PyTorch
(``CUBLAS_WORKSPACE_CONFIG=:4096:8``, 8 x 4 MiB) and of Transformer Engine (32 MiB on Hopper)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Convention:
    """How a stack completes and measures a case.

    fused_attention: the attention core is one kernel that stores no scores.
    dropout: on the residual branches and, if the core is not fused, on the scores.
    fused_gate: a gated activation is one kernel (otherwise its inner result is kept too).
    learned_positions: for models that are not gated. vocab: where it is not stated.
    tied: input and output embedding are one, where not stated.
    vocab_divisor: padding of the vocabulary over tp.
    first_rank: memory is that of global rank 0, hence of the first stage; else of the worst.
    allocated: memory is what the framework's allocator handed out, without context and
        communicator buffers. byte_factor: printed unit over the unit of the case's figure.
    """

    fused_attention: bool = True
    dropout: bool = False
    fused_gate: bool = True
    learned_positions: bool = False
    vocab: int | None = None
    tied: bool = False
    vocab_divisor: int = 128
    first_rank: bool = False
    allocated: bool = True
    byte_factor: float = 1.0


MEGATRON_2021 = Convention(
    fused_attention=False, dropout=True, learned_positions=True, vocab=51200, tied=True
)
"""Megatron-LM of SC21 (arXiv 2104.04473) and of Korthikanti et al. (arXiv 2205.05198): softmax
fused with its mask, scores stored, dropout 0.1, learned positions, tied embeddings."""

MEGATRON_CI = Convention(
    dropout=True, learned_positions=True, vocab=50257, tied=True, first_rank=True
)
"""Megatron-LM's functional tests: GPT-2 byte pairs, dropout at its default of 0.1; memory is
``torch.cuda.memory_allocated`` of rank 0 (``tests/functional_tests/test_cases/*/model_config.yaml``
and ``megatron/training/training.py``)."""

MEGATRON_CI_SMALL = Convention(
    fused_attention=False,
    dropout=True,
    learned_positions=True,
    vocab=50257,
    tied=True,
    first_rank=True,
)
"""The same for the 512 wide test models, which run with ``--attention-backend unfused``."""

NANOTRON = Convention(fused_gate=False, vocab_divisor=1, first_rank=True, byte_factor=GIB / 1e9)
"""nanotron (``src/nanotron/helpers.py``): rank 0 writes ``max_memory_allocated`` divided by 2^30
and calls the unit GB; the gated activation is two eager operations
(``src/nanotron/nn/activations.py``)."""

_BY_STACK: Mapping[str, Convention] = MappingProxyType(
    {"megatron-2021": MEGATRON_2021, "megatron-ci": MEGATRON_CI, "nanotron": NANOTRON}
)


def convention(case: Case) -> Convention:
    """The convention of the case's stack; the defaults of ``Convention`` for an unknown one."""
    if case.stack == "megatron-ci" and case.model.flag("toy"):
        return MEGATRON_CI_SMALL
    return _BY_STACK.get(case.stack, Convention())
