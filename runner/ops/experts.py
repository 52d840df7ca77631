"""``experts``: routed feed-forward experts. Tokens travel to the ranks that hold their experts."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional

from costmodel.model.graph import Op
from runner.dispatch import Dispatch
from runner.functions import FUNCTIONS
from runner.place import Place
from runner.recompute import again
from runner.typed import split


def run(op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place) -> Tensor:
    """Dispatch over ep, gather over etp, local experts, and the way back."""
    x, scores = inputs[0].flatten(0, 1), inputs[1].flatten(0, 1)
    share, expert = scores.topk(int(op.attributes["top_k"]), dim=-1)
    order = expert.flatten().argsort(stable=True)
    dispatch = Dispatch(expert.flatten()[order], scores.shape[-1], place.mesh.ep, place.mesh.etp)
    token = order // expert.shape[1]
    rows = dispatch.send(x[token])
    lead = place.mesh.etp.index == 0
    parts = split(rows[dispatch.by_expert], dispatch.per_expert)
    done = [_expert(op, part, weights, e, place, lead) for e, part in enumerate(parts)]
    back = dispatch.back(torch.cat(done)[dispatch.by_expert.argsort()])
    weighted = back * share.flatten()[order].unsqueeze(-1)
    return torch.zeros_like(x).index_add(0, token, weighted).reshape(inputs[0].shape)


def whole(
    op: Op, inputs: tuple[Tensor, ...], weights: Mapping[str, Tensor], place: Place
) -> Tensor:
    """Every expert on every token, weighted by the router's scores (mostly zero)."""
    x, scores = inputs
    parts = [
        _expert(op, x, weights, e, place, lead=True) * scores[..., e : e + 1]
        for e in range(scores.shape[-1])
    ]
    return torch.stack(parts).sum(dim=0)


def _expert(
    op: Op, x: Tensor, weights: Mapping[str, Tensor], index: int, place: Place, lead: bool
) -> Tensor:
    """``down(f(gate x) * up x)`` or ``down(f(up x))``; an etp group's lead adds down's bias."""

    def product(name: str, value: Tensor, *, biased: bool = True) -> Tensor:
        bias = weights.get(f"{name}_bias") if biased else None
        made = place.product(lambda x, w: functional.linear(x, w[index]), value, weights[name])
        return made if bias is None else made + bias[index]

    function = FUNCTIONS[str(op.attributes["function"])]
    names = [name for name in ("gate", "up") if name in weights]
    inner = tuple(product(name, x) for name in names)

    def activate(first: Tensor, *second: Tensor) -> Tensor:
        return function(first) * second[0] if second else function(first)

    hidden = again(activate, inner) if place.selective else activate(*inner)
    return product("down", hidden, biased=lead)
