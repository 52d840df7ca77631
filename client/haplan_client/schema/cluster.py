"""The cluster document: what an administrator writes or posts.

Numbers with a dimension are text with a unit ("900 GB/s"); the planner parses and checks
them. Here only names, shapes and ranges are checked.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MAX_COUNT = 10_000_000


def _text_like(example: str) -> Callable[[object], object]:
    def explain(value: object) -> object:
        if isinstance(value, int | float):
            unit = example.split()[1]
            raise ValueError(f'write the number with its unit, as in "{value} {unit}"')
        return value

    return explain


Bytes = Annotated[str, BeforeValidator(_text_like("80 GB")), Field(examples=["80 GB"])]
Bandwidth = Annotated[str, BeforeValidator(_text_like("900 GB/s")), Field(examples=["900 GB/s"])]
Seconds = Annotated[str, BeforeValidator(_text_like("2 us")), Field(examples=["2 us"])]
Arithmetic = Annotated[
    str, BeforeValidator(_text_like("989 TFLOP/s")), Field(examples=["989 TFLOP/s"])
]
Price = Annotated[str, BeforeValidator(_text_like("2.5 USD")), Field(examples=["2.5 USD"])]

Name = Annotated[str, Field(min_length=1, max_length=200)]
Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4", "int8"]
Collective = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p"]
Topology = Literal["switch", "mesh", "ring", "pcie"]
Fraction = Annotated[float, Field(gt=0, le=1)]
Efficiency = Annotated[float, Field(gt=0, le=4)]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]


class Document(BaseModel):
    """Settings shared by all hand-written documents: nothing unknown, nothing converted."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class ChipOverrides(Document):
    """Numbers of a chip that the owner knows better; what is left out stays as published."""

    memory: Bytes | None = None
    memory_bandwidth: Bandwidth | None = None
    memory_fraction: Fraction | None = Field(
        default=None, description="share of the memory bandwidth that large streams reach"
    )
    peak: dict[Precision, Arithmetic] = Field(default={}, description="dense, by precision")
    matmul_fraction: dict[Precision, Fraction] = Field(
        default={}, description="share of the peak that large matrix products reach"
    )


class LinkOverrides(Document):
    """Numbers of a link that the owner knows better."""

    bandwidth: Bandwidth | None = Field(
        default=None, description="one direction; per chip for scale-up, per NIC otherwise"
    )
    latency: Seconds | None = Field(default=None, description="per message and hop")
    efficiency: dict[Collective, Efficiency] = Field(
        default={}, description="bus bandwidth of large messages over `bandwidth`"
    )
    topology: Topology | None = None
    multicast: bool | None = Field(default=None, description="the switch can reduce")
    ports: Count | None = Field(default=None, description="peers sharing the bandwidth in a mesh")


class PoolOverrides(Document):
    """Any number of the pool's chip and links."""

    chip: ChipOverrides = ChipOverrides()
    scale_up: LinkOverrides = LinkOverrides()
    scale_out: LinkOverrides = LinkOverrides()


class Measured(Document):
    """What the owner measured on this pool, one of the two."""

    efficiency: Fraction | None = Field(
        default=None, description="share of the peak that the matrix products of training reach"
    )
    throughput: Arithmetic | None = Field(
        default=None, description="what they reach on one chip, in FLOP/s"
    )


class ScaleOut(Document):
    """The network of a pool: which link, and how many NICs a node has on it."""

    link: Name
    nics: Count


class PoolDocument(Document):
    """Identical nodes on one fabric."""

    name: Name
    island: Name = "main"
    nodes: Count
    chips_per_node: Annotated[int, Field(ge=1, le=1024)]
    chip: Name
    scale_up: Name
    scale_out: ScaleOut
    scale_up_domain: Count | None = Field(
        default=None, description="chips joined by the scale-up link, where more than a node"
    )
    measured: Measured | None = None
    overrides: PoolOverrides | None = None
    price_per_chip_hour: Price | None = None
    memory_margin: Fraction | None = Field(
        default=None, description="usable share of the memory, 0.92 if not given"
    )
    node_names: list[Name] | None = Field(default=None, description="as many as nodes")


class BetweenIslands(Document):
    """What joins islands; without `islands` every pair of them."""

    islands: list[Name] | None = Field(default=None, min_length=2, max_length=2)
    link: Name
    nics: Count = 1
    oversubscription: Annotated[float, Field(ge=1, le=1000)] = 1.0
    overrides: LinkOverrides | None = None


def _one_or_many(value: object) -> object:
    if value is None:
        return []
    return cast("list[object]", value) if isinstance(value, list) else [value]


class OwnSheets(Document):
    """Sheets by name, as in `cluster_profiles`; they come before the bundled ones."""

    chips: dict[Name, dict[str, Any]] = Field(default={}, max_length=256)
    links: dict[Name, dict[str, Any]] = Field(default={}, max_length=256)


class ClusterDocument(Document):
    """Pools in islands, and what joins the islands."""

    name: Name
    description: Annotated[str, Field(max_length=2000)] | None = None
    pools: list[PoolDocument] = Field(min_length=1, max_length=256)
    between_islands: Annotated[list[BetweenIslands], BeforeValidator(_one_or_many)] = Field(
        default=[], max_length=10_000, description="one entry, or a list with one per pair"
    )
    class_defaults: bool = Field(
        default=False,
        description="use the documented default of a class where a number is unknown",
    )
    sheets: OwnSheets = Field(
        default=OwnSheets(), description="chips and links that are not bundled, or other than so"
    )
