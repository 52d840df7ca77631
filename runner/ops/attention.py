"""``attention``: softmax(q k^T) v with grouped keys; keys and values are gathered over cp."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import torch
from torch import Tensor

from costmodel.model.graph import Op
from runner.convert import gather
from runner.place import Place
from runner.typed import unflatten

TOKENS = 1


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """Queries of the rank's cp chunk against keys and values of the whole sequence."""
    q, *rest = inputs
    k, v = (gather(x, place.mesh.cp, TOKENS, place.memory) for x in rest)
    k, v = _with_heads(k, op.inputs[1], place), _with_heads(v, op.inputs[2], place)
    groups = k.shape[2]
    q = unflatten(q, 2, (groups, q.shape[2] // groups))
    scores = torch.einsum("bqgid,btgd->bgiqt", q, k) / q.shape[-1] ** 0.5
    scores = scores + _bias(op, place, scores)
    shares = _softmax(scores, weights.get("sinks"))
    return torch.einsum("bgiqt,btgd->bqgid", shares, v).flatten(2, 3)


def whole(
    op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place
) -> Tensor:
    """One head after the other."""
    q, k, v = inputs
    k, v = _with_heads(k, op.inputs[1], place), _with_heads(v, op.inputs[2], place)
    outputs: list[Tensor] = []
    for head in range(q.shape[2]):
        group = head * k.shape[2] // q.shape[2]
        scores = q[:, :, head] @ k[:, :, group].transpose(1, 2) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(~_mask(*_limits(op), q.shape[1]), -torch.inf)
        if op.attributes.get("alibi", False):
            scores = scores + _slopes(place)[head] * torch.arange(k.shape[1])
        top = scores.exp()
        total = top.sum(dim=-1, keepdim=True)
        total = total + weights["sinks"][head].exp() if "sinks" in weights else total
        outputs.append(top / total @ v[:, :, group])
    return torch.stack(outputs, dim=2)


def _limits(op: Op) -> tuple[bool, int, int]:
    """Causal, window and chunk of an attention."""
    attributes = op.attributes
    causal = bool(attributes.get("causal", False))
    return causal, int(attributes.get("window", 0)), int(attributes.get("chunk", 0))


@lru_cache(maxsize=64)
def _mask(causal: bool, window: int, chunk: int, tokens: int) -> Tensor:
    """Which key (column) each query (row) of a whole sequence sees."""

    def visible(query: int, key: int) -> bool:
        late = causal and key > query
        far = window > 0 and abs(query - key) >= window
        apart = chunk > 0 and key // chunk != query // chunk
        return not (late or far or apart)

    return torch.tensor([[visible(i, j) for j in range(tokens)] for i in range(tokens)])


def _with_heads(x: Tensor, name: str, place: Place) -> Tensor:
    return x if x.dim() > 3 or len(place.dims(name)) > 1 else x.unsqueeze(2)


def _bias(op: Op, place: Place, scores: Tensor) -> Tensor:
    """What is added to the scores: minus infinity where a key is not seen, and ALiBi."""
    query = place.positions.unsqueeze(1)
    key = torch.arange(scores.shape[-1]).unsqueeze(0)
    causal, window, chunk = _limits(op)
    hidden = torch.zeros(query.shape[0], key.shape[1], dtype=torch.bool)
    if causal:
        hidden |= key > query
    if window:
        hidden |= (query - key).abs() >= window
    if chunk:
        hidden |= key // chunk != query // chunk
    bias = torch.zeros(hidden.shape, dtype=scores.dtype).masked_fill(hidden, -torch.inf)
    if not op.attributes.get("alibi", False):
        return bias
    mine = scores.shape[1] * scores.shape[2]
    slopes = _slopes(place)[place.mesh.tp.index * mine :][:mine]
    return bias + slopes.reshape(*scores.shape[1:3], 1, 1) * key


def _slopes(place: Place) -> Tensor:
    heads = place.block.dims["heads"]
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)


def _softmax(scores: Tensor, sinks: Tensor | None) -> Tensor:
    """Softmax over the keys; a sink is one more key without a value."""
    if sinks is None:
        return scores.softmax(dim=-1)
    sink = sinks.reshape(1, *scores.shape[1:3], 1, 1).expand(*scores.shape[:-1], 1)
    return torch.cat((scores, sink), dim=-1).softmax(dim=-1)[..., :-1]
