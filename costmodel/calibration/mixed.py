"""Cases on several pools of chips, whose stages are stated one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from costmodel.calibration.case import Case, Section, UnscorableError
from costmodel.calibration.clusters import fabric_of
from costmodel.errors import InputError
from costmodel.hardware.read import chip_names, load_cluster
from costmodel.hardware.values import Cluster
from costmodel.layout.values import Layout, Pipeline, Schedule, Stage, StageOption

UNITS_BEFORE = {2: 1, 6: 2}
"""Units that are not layers -> how many of them come before the layers: the embedding and the head;
or DeepSpeed's embedding and a transposition, and behind transposition, norm, head and loss."""

GBYTE_TO_GBIT = 8.0

MIXED_ASSUMPTION = "not stated: FP16, 1F1B, nothing recomputed or sharded, stages in chip order"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A pool of a mixed case. rates: Gb/s of a chip's scale-up link and of a node's NIC; None as in
    the usual machine of the chip."""

    chip: str
    nodes: int
    chips_per_node: int
    rates: tuple[float | None, float | None]

    @property
    def num_chips(self) -> int:
        """Chips in the pool."""
        return self.nodes * self.chips_per_node


def is_mixed(case: Case) -> bool:
    """Whether the case states a layout stage by stage instead of degrees."""
    return bool(case.layout.values)


def plain_case(case: Case) -> Case:
    """The case with batch, degrees and the number of chips where a uniform one has them.

    Raises UnscorableError where they are not stated.
    """
    pieces, layout = pieces_of(case), case.layout
    degrees = {"tp": layout.size("tp") or 1, "pp": layout.need("pp")}
    batch = {"mbs": layout.need("mbs"), "gbs": layout.need("gbs")}
    chips = sum(piece.num_chips for piece in pieces)
    plain = case.with_values("hardware", chip=pieces[0].chip, n_chips=chips)
    stated = {**degrees, **batch, "precision": "fp16", "recompute": "none"}
    return plain.with_values("parallel", **stated, optimizer_sharding=False)


def pieces_of(case: Case) -> tuple[Piece, ...]:
    """The pools. Raises UnscorableError for hardware that is not described."""
    hardware = case.hardware
    pools = cast("Sequence[Mapping[str, Any]]", hardware.values.get("pools") or ())
    found = [_piece(Section(name="pool", values=pool)) for pool in pools]
    if not found and hardware.size("nodes"):
        found = [_site(hardware)]
    for piece in found:
        if piece.chip not in chip_names():
            raise UnscorableError(f"chip {piece.chip or 'not stated'} has no profile")
    if not found:
        raise UnscorableError("hardware pools not stated")
    return tuple(found)


def _piece(pool: Section) -> Piece:
    return Piece(
        chip=pool.word("chip"),
        nodes=pool.need("nodes"),
        chips_per_node=pool.need("chips_per_node"),
        rates=(pool.number("scale_up_gbit_per_s"), pool.number("scale_out_gbit_per_s")),
    )


def _site(hardware: Section) -> Piece:
    """Nodes of four chips, with the rates that the source measured between four and four."""
    chips = cast("Sequence[str]", hardware.values.get("chips") or [""])
    rates: dict[str, float] = {
        key.split()[0].split("_")[0]: max(cast("Sequence[float]", value)) * GBYTE_TO_GBIT
        for key, value in hardware.values.items()
        if key.startswith(("intra_node", "inter_node"))
    }
    return Piece(
        chip=chips[0],
        nodes=hardware.need("nodes"),
        chips_per_node=4,
        rates=(rates.get("intra"), rates.get("inter")),
    )


def mixed_cluster(case: Case) -> Cluster:
    """Pools of one network. Raises UnscorableError for hardware that is not described."""
    pools = [_pool(i, piece) for i, piece in enumerate(pieces_of(case))]
    try:
        return load_cluster({"name": "case", "class_defaults": True, "pools": pools})
    except InputError as error:
        raise UnscorableError(f"cluster: {error.violations[0]}") from error


def _pool(index: int, piece: Piece) -> dict[str, object]:
    fabric = fabric_of(piece.chip)
    overrides = {
        part: {"bandwidth": f"{rate} Gb/s"}
        for part, rate in zip(("scale_up", "scale_out"), piece.rates, strict=True)
        if rate is not None
    }
    return {
        "name": f"pool{index}",
        "island": "case",
        "nodes": piece.nodes,
        "chips_per_node": piece.chips_per_node,
        "chip": piece.chip,
        "scale_up": fabric.scale_up,
        "scale_out": {"link": "ethernet-10g", "nics": 1},
        "overrides": overrides,
    }


def mixed_layout(case: Case, num_layers: int) -> Layout:
    """The stated stages on consecutive chips. Raises UnscorableError for what is not modelled."""
    counts, degrees = _stated_stages(case)
    cuts = _cuts(counts, num_layers)
    pools = _placed(case, [tp * replicas for tp, replicas in degrees])
    size, batch = case.layout.need("mbs"), case.layout.need("gbs")
    if len({replicas for _, replicas in degrees}) > 1:
        raise UnscorableError("stages of different data parallelism in one pipeline")
    options = [
        StageOption(
            pool=pool,
            tp=tp,
            cp=1,
            ep=1,
            etp=1,
            replicas=replicas,
            micro_batch_size=size,
            sequence_parallel=False,
            zero=0,
            recompute="none",
        )
        for pool, (tp, replicas) in zip(pools, degrees, strict=True)
    ]
    last = len(options) - 1
    stages = tuple(
        Stage(option=option, chunks=((cuts[i], cuts[i + 1]),), embedding=i == 0, head=i == last)
        for i, option in enumerate(options)
    )
    microbatches, rest = divmod(batch, size * degrees[0][1])
    if rest:
        raise UnscorableError("batch is not a multiple of mbs dp")
    pipeline = Pipeline(stages=stages, microbatches=microbatches)
    return Layout(pipelines=(pipeline,), schedule=Schedule(kind="1f1b", virtual_stages=1))


def _stated_stages(case: Case) -> tuple[list[int], list[tuple[int, int]]]:
    """Units of each stage, and its tp and replicas."""
    layout = case.layout
    units = cast("Sequence[int]", layout.values.get("units_per_stage") or ())
    if units:
        degree = (layout.size("tp") or 1, layout.need("dp"))
        return list(units), [degree] * len(units)
    stages = cast("Sequence[Mapping[str, Any]]", layout.values.get("stages") or ())
    if not stages:
        raise UnscorableError("layout stages not stated")
    degrees: list[tuple[int, int]] = []
    for stage in stages:
        tps = {int(replica["tp"]) for replica in stage["replicas"]}
        if len(tps) > 1:
            raise UnscorableError("replicas of different tensor parallelism in one stage")
        degrees.append((tps.pop(), len(stage["replicas"])))
    return [int(stage["units"]) for stage in stages], degrees


def _cuts(units: Sequence[int], num_layers: int) -> list[int]:
    """Ends of the stages in layers; other units stand before and behind the layers."""
    beside = sum(units) - num_layers
    if beside not in UNITS_BEFORE:
        raise UnscorableError("units of the stages are not layers and the usual ones beside them")
    ends, done = [0], 0
    for count in units:
        done += count
        ends.append(min(max(done - UNITS_BEFORE[beside], 0), num_layers))
    return ends


def _placed(case: Case, chips: Sequence[int]) -> list[str]:
    """The pool of each stage, when the stages fill the chips in order."""
    ends: list[int] = []
    for piece in pieces_of(case):
        ends.append((ends[-1] if ends else 0) + piece.num_chips)
    pools: list[str] = []
    start = 0
    for count in chips:
        stop = start + count
        starts = [0, *ends[:-1]]
        inside = [i for i, end in enumerate(ends) if starts[i] <= start and stop <= end]
        if not inside:
            raise UnscorableError("a stage on two kinds of chip")
        pools.append(f"pool{inside[0]}")
        start = stop
    return pools
