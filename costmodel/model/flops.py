"""Model FLOPs: the arithmetic that the mathematics asks for, whatever the implementation does.

Only matrix products count: norms, activations and the embedding lookup do not. No recompute, no
padding, only the experts that a token is routed to. One multiply-add is 2 FLOP. The backward is
twice the forward (one product for the input's gradient, one for the weight's). Causal attention
counts half of the square (Narayanan et al., arXiv 2104.04473, appendix, count all of it).
"""

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

from costmodel.model.graph import Block, ModelGraph, Op
from costmodel.model.parameters import block_uses, op_parameters

BACKWARD_FACTOR = 2.0
"""Backward FLOP per forward FLOP of a matrix product."""

SCAN_FLOP_PER_STATE = 7.0
"""Forward FLOP per element of a recurrent state and token: decay (1), update (4), readout (2)."""


def keys_seen(op: Op, sequence_length: float, *, causal: bool | None = None) -> float:
    """Mean number of keys that a query of an op attends to in a sequence of s tokens.

    All: s. Causal: s/2. At most w latest keys (``window``), or w keys chosen by an indexer
    (``top_keys``): w (1 - w / 2s), the mean of min(position, w). Blocks of c tokens (``chunk``):
    as a sequence of c. ``compress`` r adds one key for every r earlier tokens, of which at most
    ``compressed_keys`` are chosen. ``key_stride`` r: only one key for every r tokens.

    causal: overrides the op's own attribute; False counts keys after the query too.
    """
    get = op.attributes.get
    half = bool(get("causal")) if causal is None else causal
    chunk = float(get("chunk", 0))
    s = min(float(sequence_length), chunk) if chunk else float(sequence_length)
    reach = min(s, *(float(get(key, 0) or s) for key in ("window", "top_keys")))
    keys = _mean_reach(reach, s, causal=half)
    ratio = float(get("compress", 0))
    if ratio:
        chosen = float(get("compressed_keys", 0) or s)
        keys += _mean_reach(min(chosen * ratio, s), s, causal=half) / ratio
    return keys / float(get("key_stride", 1))


def _mean_reach(reach: float, s: float, *, causal: bool) -> float:
    return reach * (1.0 - reach / (2.0 * s)) if causal else reach


def op_forward_flop(op: Op, block: Block, *, keys: float) -> float:
    """Forward FLOP of one op per token that it processes.

    keys: what ``keys_seen`` gives for attention; other kinds ignore it.
    """
    rule = _RULES.get(op.kind)
    return rule(op, block, keys) if rule else 0.0


def _product(op: Op, block: Block, keys: float) -> float:
    del keys
    matrices = [w for w in op.weights if w.name not in ("bias", "expert_scale")]
    return 2.0 * sum(block.elements(w.dims) for w in matrices)


def _experts(op: Op, block: Block, keys: float) -> float:
    del keys
    matrices = [w for w in op.weights if not w.name.endswith("bias")]
    size = sum(block.elements(w.dims) for w in matrices)
    return 2.0 * size * float(op.attributes["top_k"]) / block.dims["experts"]


def _attention(op: Op, block: Block, keys: float) -> float:
    query, output = block.tensors[op.inputs[0]], block.tensors[op.outputs[0]]
    return 2.0 * keys * (block.elements(query) + block.elements(output))


def _scan(op: Op, block: Block, keys: float) -> float:
    del keys
    width = block.elements(block.tensors[op.outputs[0]])
    return SCAN_FLOP_PER_STATE * width * float(op.attributes["state"])


def _opaque(op: Op, block: Block, keys: float) -> float:
    del block
    per_key = float(op.attributes.get("flop_per_key", 0))
    return float(op.attributes["flop_per_token"]) + per_key * keys


_RULES: Mapping[str, Callable[[Op, Block, float], float]] = MappingProxyType(
    {
        "linear": _product,
        "router": _product,
        "head": _product,
        "classifier": _product,
        "experts": _experts,
        "attention": _attention,
        "conv": _product,
        "scan": _scan,
        "opaque": _opaque,
    }
)


def stream_lengths(graph: ModelGraph, sequence_length: int) -> dict[str, int]:
    """Tokens of each stream for this sequence length."""
    return {name: fixed or sequence_length for name, fixed in graph.streams.items()}


def block_forward_flop(block: Block, lengths: Mapping[str, int]) -> float:
    """Forward FLOP of one block for one whole sequence.

    lengths: tokens of each stream. An op with the attribute ``stream`` processes that stream's
    tokens (keys and values of cross-attention); ``keys_stream`` says where an attention's keys
    come from; ``per_sequence`` marks ops that run once a sequence (a classifier);
    ``outputs_per_token`` is how often an op runs per token (strided convolutions, patch merging).
    """
    total = 0.0
    for op in block.ops:
        keys = keys_seen(op, lengths[_keys_stream(op, block)])
        share = float(op.attributes.get("outputs_per_token", 1))
        total += _tokens(op, block, lengths) * share * op_forward_flop(op, block, keys=keys)
    return total


def _tokens(op: Op, block: Block, lengths: Mapping[str, int]) -> int:
    own = str(op.attributes.get("stream", block.stream))
    return 1 if op.attributes.get("per_sequence") else lengths[own]


def _keys_stream(op: Op, block: Block) -> str:
    return str(op.attributes.get("keys_stream", block.stream))


def flops_per_token(graph: ModelGraph, sequence_length: int, *, mtp: bool = True) -> float:
    """Model FLOP, forward and backward, per token of the main stream.

    mtp: include multi-token-prediction blocks, where the model has them. Components count by
    their ``tokens_per_sequence``; where that is not stated they do not count.
    """
    lengths = stream_lengths(graph, sequence_length)
    forward = sum(n * block_forward_flop(b, lengths) for b, n in _run_blocks(graph, mtp=mtp))
    for part in graph.components:
        own = dict.fromkeys(graph.streams, part.tokens_per_sequence or 0)
        forward += sum(n * block_forward_flop(graph.blocks[name], own) for name, n in part.blocks)
    return (1.0 + BACKWARD_FACTOR) * forward / lengths["main"]


def bookkeeping_flops_per_token(
    graph: ModelGraph, sequence_length: int, *, mtp: bool = True
) -> float:
    """6 FLOP per active parameter and 6 per attended query-key product, nothing halved.

    The count that training frameworks report: every weight that a token meets counts, also norms
    and biases, only the token embedding does not; attention counts keys after the query too
    (torchtitan: https://github.com/pytorch/torchtitan/pull/4441).
    """
    lengths = stream_lengths(graph, sequence_length)
    forward = sum(n * _bookkeeping(b, lengths) for b, n in _run_blocks(graph, mtp=mtp))
    return (1.0 + BACKWARD_FACTOR) * forward / lengths["main"]


def _run_blocks(graph: ModelGraph, *, mtp: bool) -> list[tuple[Block, int]]:
    uses = block_uses(graph) + Counter(graph.mtp if mtp else ())
    return [(graph.blocks[name], n) for name, n in uses.items()]


def _bookkeeping(block: Block, lengths: Mapping[str, int]) -> float:
    total = 0.0
    for op in block.ops:
        size = 0 if op.kind == "embedding" else op_parameters(op, block)
        if op.kind == "experts":
            size *= int(op.attributes["top_k"]) / block.dims["experts"]
        flop = 2.0 * size * float(op.attributes.get("outputs_per_token", 1))
        keys = keys_seen(op, lengths[_keys_stream(op, block)], causal=False)
        if op.kind == "attention":
            flop += _attention(op, block, keys)
        flop += float(op.attributes.get("flop_per_key", 0)) * keys
        total += flop * _tokens(op, block, lengths)
    return total
