"""Builds a block op by op: one method per op kind, all dimensions by name.

Tensors are named after the op that makes them. Every method returns the name of its output.
The meaning of each kind is in ``docs/ops.md``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from costmodel.model.graph import Attribute, Block, Op, Weight

Dims = tuple[str, ...]
STREAM: Dims = ()
"""The ``tp_dims`` of an op that tensor parallelism does not split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Norm:
    """RMS or layer norm, with or without a learned scale and bias."""

    function: str = "rms"
    scale: bool = True
    bias: bool = False


RMS = Norm()
LAYER = Norm(function="layer", bias=True)


class BlockBuilder:
    """Collects the dimensions, tensors and ops of one block."""

    def __init__(
        self,
        name: str,
        dims: Mapping[str, int],
        *,
        inputs: Mapping[str, Dims] = MappingProxyType({"x": ("hidden",)}),
        stream: str = "main",
    ) -> None:
        self.name = name
        self.dims = dict(dims)
        self.tensors: dict[str, Dims] = dict(inputs)
        self.inputs = tuple(inputs)
        self.stream = stream
        self.streams: dict[str, str] = {"memory": "encoder"} if "memory" in inputs else {}
        self.ops: list[Op] = []

    def define(self, **sizes: int) -> None:
        """Adds dimensions; a name has one size in a block."""
        for name, size in sizes.items():
            if self.dims.setdefault(name, size) != size:
                raise ValueError(f"{self.name}: {name} is both {self.dims[name]} and {size}")

    def op(
        self,
        kind: str,
        name: str,
        inputs: tuple[str, ...],
        out: Dims | None,
        /,
        *,
        weights: Mapping[str, Dims] = MappingProxyType({}),
        tp: Dims = STREAM,
        **attributes: Attribute | None,
    ) -> str:
        """Adds any op; ``out`` None means no output (a head); attributes of None are left out."""
        if out is not None:
            self.tensors[name] = out
        self.ops.append(
            Op(
                name=name,
                kind=kind,
                inputs=inputs,
                outputs=() if out is None else (name,),
                weights=tuple(Weight(name=key, dims=dims) for key, dims in weights.items()),
                tp_dims=tp,
                attributes=MappingProxyType(
                    {key: value for key, value in attributes.items() if value is not None}
                ),
            )
        )
        return name

    def norm(
        self, name: str, x: str, norm: Norm, *, over: Dims | None = None, tp: Dims = STREAM
    ) -> str:
        """Norm over the dimensions ``over`` (default: the last one of x)."""
        dims = self.tensors[x][-1:] if over is None else over
        weights = {"scale": dims} if norm.scale else {}
        weights |= {"bias": dims} if norm.bias else {}
        return self.op(
            "norm", name, (x,), self.tensors[x], weights=weights, tp=tp, function=norm.function
        )

    def linear(self, name: str, x: str, out: Dims, *, tp: Dims = STREAM, bias: bool = False) -> str:
        """Weight of out + in dimensions; a dimension that x and out share is not contracted.

        A tensor of another stream than the block's (the encoder output) is processed per token
        of that stream, which the attribute ``stream`` says.
        """
        contracted = tuple(dim for dim in self.tensors[x] if dim not in out)
        weights = {"weight": out + contracted}
        stream = self.streams.get(x)
        self.op("linear", name, (x,), out, weights=weights, tp=tp, stream=stream)
        return self.bias(f"{name}_bias", name, tp=tp) if bias else name

    def bias(self, name: str, x: str, *, tp: Dims = STREAM) -> str:
        """Adds a vector with the dimensions of x, split where x is split."""
        dims = self.tensors[x]
        split = tp if any(dim in tp for dim in dims) else STREAM
        return self.op("bias", name, (x,), dims, weights={"bias": dims}, tp=split)

    def rotary(
        self, name: str, x: str, *, tp: Dims = STREAM, size: int = 0, at_end: bool = False
    ) -> str:
        """Rotates the first (or last) ``size`` elements of the last dimension; 0: all of it."""
        return self.op("rotary", name, (x,), self.tensors[x], tp=tp, size=size, at_end=at_end)

    def activation(self, name: str, inputs: tuple[str, ...], function: str, tp: Dims) -> str:
        """f(g), or f(g) * u with two inputs."""
        dims = self.tensors[inputs[0]]
        return self.op("activation", name, inputs, dims, tp=tp, function=function)

    def add(self, name: str, a: str, b: str) -> str:
        """Residual addition on the stream."""
        return self.op("elementwise", name, (a, b), self.tensors[a], function="add")

    def multiply(self, name: str, a: str, b: str, *, tp: Dims = STREAM) -> str:
        """Product; b is broadcast over the dimensions that it lacks."""
        return self.op("elementwise", name, (a, b), self.tensors[a], tp=tp, function="mul")

    def concat(self, name: str, a: str, b: str, out: Dims, *, tp: Dims = STREAM) -> str:
        """Joins the last dimensions of a and b; b is broadcast over dimensions that it lacks."""
        return self.op("elementwise", name, (a, b), out, tp=tp, function="concat")

    def build(self, output: str) -> Block:
        """The finished block, with ``output`` handed to the next one ('' for a head)."""
        return Block(
            name=self.name,
            dims=MappingProxyType(self.dims),
            tensors=MappingProxyType(self.tensors),
            ops=tuple(self.ops),
            inputs=self.inputs,
            output=output,
            stream=self.stream,
        )
