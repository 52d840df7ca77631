"""Stage costs of many options at once: the arrays that both `estimate` and the search read.

There is one implementation of each formula, vectorised over stage options; one layout is a table
with the options of its stages, a search is a table with every admissible option. Layers are not
all alike, so per-layer quantities are prefix sums: the cost of layers [a, b) under option o is
``prefix[o, b] - prefix[o, a]``. The embedding, head and multi-token-prediction blocks are kept
apart because they belong to the first and last stage only.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from costmodel.layout.values import StageOption

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Additive costs of a run of blocks under each option; every array has the same shape.

    Shape (O, L + 1) for the layers (prefix sums over the layer axis), (O,) for an end block.

    forward_s, backward_s: time of one micro-batch on one stage instance, compute plus exposed
        communication inside the stage, including recomputation in the backward.
    forward_tp_s, forward_cp_s, forward_ep_s and backward_*: the exposed communication parts of
        these times (so compute = total - parts).
    weight_gradient_s: the part of the backward that makes weight gradients; what is left of it,
        recomputation included, makes the gradient that the stage before waits for.
    activation_bytes: kept per in-flight micro-batch on one chip.
    deferred_bytes: kept instead between the two parts of a backward, when what was dropped has been
        computed again.
    dense_parameters, expert_parameters: held by one chip before any ZeRO sharding (expert
        parameters are sharded over ep * etp and have their own data-parallel group).
    """

    forward_s: FloatArray
    backward_s: FloatArray
    forward_tp_s: FloatArray
    forward_cp_s: FloatArray
    forward_ep_s: FloatArray
    backward_tp_s: FloatArray
    backward_cp_s: FloatArray
    backward_ep_s: FloatArray
    weight_gradient_s: FloatArray
    activation_bytes: FloatArray
    deferred_bytes: FloatArray
    dense_parameters: FloatArray
    expert_parameters: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTable:
    """Costs of every option; O options, L layers.

    options: the options, in row order.
    layers: prefix sums over layers, shape (O, L + 1).
    embedding, head, mtp: end blocks, shape (O,). ``mtp`` is the whole multi-token depth.
    transient_bytes: peak short-lived buffers while one layer runs, (O, L); the stage's transient
        is the maximum over its layers.
    embedding_transient_bytes, head_transient_bytes: (O,), e.g. logits.
    tied_parameters: dense parameters on one chip that the head shares with the embedding, (O,);
        a stage that holds both ends keeps them once.
    mtp_head_parameters: dense parameters of the head that ``mtp`` shares and leaves out, (O,);
        a stage with the multi-token depth but without the head holds a copy.
    mtp_embedding_parameters: dense parameters of ``mtp`` that are the embedding's, (O,); a stage
        with both keeps them once.
    boundary_bytes: bytes that one chip receives per micro-batch from the previous stage, (O,);
        the sender's side may be slower, see ``costmodel.network.transfers``.
    fixed_bytes: context, workspaces and communicator buffers per chip, (O,).
    capacity_bytes: usable memory per chip, (O,).
    num_chips: chips of one stage instance, (O,). samples: sequences per micro-batch, (O,).
    pool_index: row of the pool in the cluster, (O,).
    """

    options: tuple[StageOption, ...]
    layers: Terms
    embedding: Terms
    head: Terms
    mtp: Terms
    transient_bytes: FloatArray
    embedding_transient_bytes: FloatArray
    head_transient_bytes: FloatArray
    tied_parameters: FloatArray
    mtp_head_parameters: FloatArray
    mtp_embedding_parameters: FloatArray
    boundary_bytes: FloatArray
    fixed_bytes: FloatArray
    capacity_bytes: FloatArray
    num_chips: NDArray[np.int64]
    samples: NDArray[np.int64]
    pool_index: NDArray[np.int64]

    @property
    def num_layers(self) -> int:
        """Number of layers L."""
        return int(self.layers.forward_s.shape[1]) - 1
