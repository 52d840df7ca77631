"""What a cluster is made of: frozen values in SI units.

Chips, links, nodes, pools and islands mean what the architecture page says.
A number that nobody published is `None`; the methods that read one raise
`UnknownNumberError` and say how to supply it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from costmodel.errors import UnknownNameError, UnknownNumberError, Violation

PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4", "int8")
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p")
ATTENTION_KERNELS = ("vendor", "portable")
"""Kinds of fused attention kernels: those of the chip's vendor (cuDNN), and those that are written
for many chips (FlashAttention-2)."""

ATTENTION_SHARE = 0.72
"""Attention rate over the best matrix rate where neither was measured: A100, 0.594 of 0.822."""

DEFAULT_MEMORY_MARGIN = 0.92
"""Usable share of memory: planners that price every buffer budget 0.92 to 0.94 (SimuMax: 0.94)."""


TRAINING_PRECISIONS = ("fp32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4")
"""Precisions that a job can ask for, to name in advice."""


def _no_document() -> dict[str, object]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One number that nobody measured, and what stands in for it.

    field: as in the sheet (`peak`, `bandwidth`). key: the precision or collective within the
    field, empty for a single number. value: as text with its unit.
    """

    field: str
    key: str = ""
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """One kind of accelerator.

    architecture: chips of one run the same kernels; its own name for a chip alone.
    Bandwidth and arithmetic are peaks of the data sheet, dense; the fractions say
    which share of them a large matrix product or a large stream was seen to reach.
    attention_fraction: share of the 16-bit peak that fused attention reaches, by kind of kernel
    (``ATTENTION_KERNELS``). unsupported: precisions that it cannot compute in. assumed: numbers
    above that are class defaults.
    """

    name: str
    title: str
    vendor: str
    architecture: str = ""
    memory_bytes: float | None
    memory_bytes_per_s: float | None
    memory_fraction: float | None
    peak_flop_per_s: Mapping[str, float | None] = field(hash=False)
    matmul_fraction: Mapping[str, float | None] = field(hash=False)
    attention_fraction: Mapping[str, float | None] = field(
        default_factory=dict[str, float | None], hash=False
    )
    unsupported: frozenset[str] = frozenset()
    assumed: tuple[Assumption, ...] = field(default=(), hash=False)
    confidence: str = "low"
    sources: tuple[str, ...] = ()

    def peak(self, precision: str) -> float:
        """Dense peak in FLOP/s. Raises `UnknownNumberError`."""
        self.check_computes_in(precision)
        return self._known(self.peak_flop_per_s.get(precision), f"peak.{precision}", "312 TFLOP/s")

    def matmul_efficiency(self, precision: str) -> float:
        """Share of the peak that large matrix products reach. Raises `UnknownNumberError`."""
        self.check_computes_in(precision)
        value = self.matmul_fraction.get(precision)
        return self._known(value, f"matmul_fraction.{precision}", 0.75)

    def attention_share(self, kernel: str) -> float:
        """Rate of fused attention by a kind of kernel over that of large 16-bit products."""
        fraction, matmul = self.attention_fraction.get(kernel), self.matmul_fraction.get("bf16")
        return ATTENTION_SHARE if fraction is None or not matmul else fraction / matmul

    def memory(self) -> float:
        """Device memory in bytes. Raises `UnknownNumberError`."""
        return self._known(self.memory_bytes, "memory", "80 GB")

    def streaming_bytes_per_s(self) -> float:
        """Memory bandwidth that large streams reach, bytes/s. Raises `UnknownNumberError`."""
        bandwidth = self._known(self.memory_bytes_per_s, "memory_bandwidth", "2 TB/s")
        return bandwidth * self._known(self.memory_fraction, "memory_fraction", 0.85)

    def _known(self, value: float | None, path: str, example: object) -> float:
        if value is None:
            raise unknown_number(f"chips/{self.name}.yaml", path, "chip", example)
        return value

    def check_computes_in(self, precision: str, *, pool: str = "") -> None:
        """Raises `UnknownNumberError` for a precision that the hardware lacks; names the pool."""
        if precision in self.unsupported:
            raise UnknownNumberError([self.refusal(precision, pool=pool)])

    def refusal(self, precision: str, *, pool: str = "") -> Violation:
        """What is wrong with asking the chip for a precision that it lacks, and the ways out."""
        usable = [p for p in TRAINING_PRECISIONS if self.peak_flop_per_s.get(p) is not None]
        return Violation(
            field=f"{f'pool {pool}, ' if pool else ''}chips/{self.name}.yaml: peak.{precision}",
            value="unsupported",
            rule=f"{self.title} does not compute in {precision}",
            fix=f"choose the precision {' or '.join(usable)}, or leave out the pool",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One kind of link, one direction.

    fabric: links of one fabric can share a communicator; if empty, those of one transport
    can. bytes_per_s: per chip for `scale-up`,
    per NIC for the others. latency_s: per message and hop. efficiency: per collective, bus
    bandwidth over `bytes_per_s` for large messages; above 1 where the switch reduces. ports: in
    a full mesh the number of peers that share `bytes_per_s`; 1 behind a switch. multicast: the
    switch can reduce. assumed: numbers above that are class defaults.
    """

    name: str
    kind: str
    transport: str
    topology: str
    bytes_per_s: float
    latency_s: float
    efficiency: Mapping[str, float] = field(hash=False)
    multicast: bool = False
    ports: int = 1
    fabric: str = ""
    assumed: tuple[Assumption, ...] = field(default=(), hash=False)

    def group_bytes_per_s(self, num_chips: int) -> float:
        """Bandwidth of one chip within a group of `num_chips`, bytes/s.

        In a full mesh a group of n reaches only n - 1 of the ports (seen on Ascend 910B
        and MI300X: pairs get one link); behind a switch it is the whole bandwidth.
        """
        reached = min(max(num_chips - 1, 1), self.ports)
        return self.bytes_per_s * reached / self.ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Identical nodes on one fabric.

    nics: per node. memory_margin: usable share of memory. efficiency and flop_per_s: the
    owner's own measurement, as a share of peak or in FLOP/s per chip, of which at most one
    is given. scale_up_domain: chips joined by the scale-up link, at least a node.
    """

    name: str
    island: str
    nodes: int
    chips_per_node: int
    chip: Chip = field(hash=False)
    scale_up: Link = field(hash=False)
    scale_out: Link = field(hash=False)
    nics: int
    memory_margin: float = DEFAULT_MEMORY_MARGIN
    efficiency: float | None = None
    flop_per_s: float | None = None
    price_per_chip_hour: float | None = None
    node_names: tuple[str, ...] = ()
    scale_up_domain: int

    @property
    def num_chips(self) -> int:
        """Chips in the pool."""
        return self.nodes * self.chips_per_node

    @property
    def usable_bytes(self) -> float:
        """Memory of one chip that a plan may fill: `memory_margin` of it, bytes."""
        return self.chip.memory() * self.memory_margin

    def matmul_flop_per_s(self, precision: str) -> float:
        """What large matrix products reach on one chip, FLOP/s.

        The owner's measurement if there is one, else peak times the chip's measured
        fraction. Raises `UnknownNumberError`, for a precision that the chip lacks in any case.
        """
        self.chip.check_computes_in(precision, pool=self.name)
        if self.flop_per_s is not None:
            return self.flop_per_s
        peak = self.chip.peak(precision)
        if self.efficiency is not None:
            return peak * self.efficiency
        return peak * self.chip.matmul_efficiency(precision)


@dataclass(frozen=True, slots=True, kw_only=True)
class IslandLink:
    """What joins two islands.

    nics: per node and used for this link. oversubscription: how many times more the nodes
    can send together than the network carries, at least 1.
    """

    islands: tuple[str, str]
    link: Link
    nics: int
    oversubscription: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Pools in islands and the links between the islands.

    document: the cluster document that reproduces this value.

    The hash is of the name alone (equality is of everything): clusters are keys of hot caches.
    """

    name: str
    pools: tuple[Pool, ...] = field(hash=False)
    between: tuple[IslandLink, ...] = field(default=(), hash=False)
    document: Mapping[str, object] = field(default_factory=_no_document, hash=False)

    @property
    def num_chips(self) -> int:
        """Chips in all pools."""
        return sum(pool.num_chips for pool in self.pools)

    @property
    def islands(self) -> tuple[str, ...]:
        """The islands, in the order of their first pool."""
        return tuple(dict.fromkeys(pool.island for pool in self.pools))

    def chip_counts(self) -> dict[str, int]:
        """Chips by the name of their kind, in the order of the pools."""
        counts: Counter[str] = Counter()
        for pool in self.pools:
            counts[pool.chip.name] += pool.num_chips
        return dict(counts)

    def pool(self, name: str) -> Pool:
        """The pool called `name`. Raises `UnknownNameError`."""
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise UnknownNameError(kind="pool", name=name, known=[pool.name for pool in self.pools])

    def check_computes_in(self, precision: str) -> None:
        """Raises `UnknownNumberError` with a violation for each pool if none has this precision."""
        if all(precision in pool.chip.unsupported for pool in self.pools):
            refusals = (pool.chip.refusal(precision, pool=pool.name) for pool in self.pools)
            raise UnknownNumberError(refusals)

    def island_link(self, island_a: str, island_b: str) -> IslandLink:
        """The link that joins two islands, in either order. Raises `UnknownNameError`."""
        for between in self.between:
            if set(between.islands) == {island_a, island_b}:
                return between
        known = [" - ".join(between.islands) for between in self.between]
        raise UnknownNameError(kind="island link", name=f"{island_a} - {island_b}", known=known)


def unknown_number(sheet: str, path: str, part: str, example: object) -> UnknownNumberError:
    """The error for a number in a sheet that is needed but unknown, with both remedies.

    `part` is what the overrides of this thing are called in a pool, empty where they stand
    directly under `overrides`.
    """
    override = repr(example) if not isinstance(example, str) else f'"{example}"'
    for key in reversed([*([part] if part else []), *path.split(".")]):
        override = f"{{{key}: {override}}}"
    return UnknownNumberError.of(
        field=f"{sheet}: {path}",
        value="unknown",
        rule="is needed and nobody has published it",
        fix=f"give your own in the cluster file, as in `overrides: {override}`, "
        "or set `class_defaults: true` to use the documented default of its class",
    )
