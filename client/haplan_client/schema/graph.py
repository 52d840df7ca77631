"""The model graph on the wire: blocks of ops over named dimensions.

What the fields mean is written in ``docs/models.md``, what each op kind means in ``docs/ops.md``.
A document that passes here is well formed; whether its names fit together is checked by the
reader (``costmodel.model.read``).
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

SCHEMA = "haplan.graph/v1"

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
Path = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z_]\w{0,63}\.[A-Za-z_]\w{0,63}\.\w{1,64}$")
]
Text = Annotated[str, StringConstraints(max_length=500)]
Size = Annotated[int, Field(ge=1, le=2**40)]
Attribute = bool | int | float | Annotated[str, StringConstraints(max_length=64)]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class WeightDocument(_Strict):
    """One parameter tensor."""

    name: Name
    dims: list[Name] = Field(max_length=8, description="Dimensions, outermost first")
    trainable: bool = Field(default=True, description="False: no gradient, no optimizer state")


class OpDocument(_Strict):
    """One tensor operation."""

    name: Name
    kind: Name = Field(description="Kind of operation, as in docs/ops.md")
    inputs: list[Name] = Field(default_factory=list[str], max_length=16)
    outputs: list[Name] = Field(default_factory=list[str], max_length=16)
    weights: list[WeightDocument] = Field(default_factory=list[WeightDocument], max_length=16)
    tp_dims: list[Name] = Field(
        default_factory=list[str],
        max_length=8,
        description="Dimensions that tensor parallelism splits; none: works on the stream",
    )
    attributes: dict[Name, Attribute] = Field(
        default_factory=dict[str, Attribute], max_length=32, description="Constants of the kind"
    )


class BlockDocument(_Strict):
    """A repeated unit of the model."""

    dims: dict[Name, Size] = Field(max_length=128, description="Sizes of dimensions, unpadded")
    tensors: dict[Name, list[Name]] = Field(
        max_length=1024, description="Feature dimensions of each tensor, without the tokens"
    )
    inputs: list[Name] = Field(
        default_factory=list[str], max_length=4, description="Tensors from outside, stream first"
    )
    output: Name | Literal[""] = Field(default="", description="Tensor handed on; '' for a head")
    stream: Name = Field(default="main", description="Sequence whose tokens it processes")
    ops: list[OpDocument] = Field(min_length=1, max_length=512)


class RunDocument(_Strict):
    """The same block several times in a row."""

    block: Name
    count: int = Field(default=1, ge=1, le=4096)


class TieDocument(_Strict):
    """Two weights that are one parameter, as block.op.weight paths; the copy is not counted."""

    owner: Path
    copied_to: Path


class ComponentDocument(_Strict):
    """A part beside the main stack, replicated on the first stage."""

    name: Name
    blocks: list[RunDocument] = Field(min_length=1, max_length=64)
    tokens_per_sequence: int | None = Field(default=None, ge=0, le=2**40)


class BoundaryDocument(_Strict):
    """Blocks that run just before a layer and belong to its stage."""

    before_layer: int = Field(ge=0, le=4096)
    blocks: list[Name] = Field(min_length=1, max_length=16)


class GraphDocument(_Strict):
    """A model: block definitions and the order in which they run."""

    schema_: Literal["haplan.graph/v1"] = Field(alias="schema")
    name: Text
    family: Text
    blocks: dict[Name, BlockDocument] = Field(min_length=1, max_length=512)
    prologue: list[Name] = Field(default_factory=list[str], max_length=16)
    layers: list[RunDocument] = Field(min_length=1, max_length=4096)
    epilogue: list[Name] = Field(default_factory=list[str], max_length=16)
    mtp: list[Name] = Field(default_factory=list[str], max_length=16)
    ties: list[TieDocument] = Field(default_factory=list[TieDocument], max_length=256)
    components: list[ComponentDocument] = Field(
        default_factory=list[ComponentDocument], max_length=16
    )
    streams: dict[Name, Size | None] = Field(
        default_factory=lambda: {"main": None},
        max_length=8,
        description="Tokens of each sequence; null: the job's sequence length",
    )
    boundaries: list[BoundaryDocument] = Field(
        default_factory=list[BoundaryDocument], max_length=64
    )
    max_sequence_length: Size | None = None
    assumptions: list[Text] = Field(default_factory=list[str], max_length=64)
