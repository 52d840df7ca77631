"""What a user measured on a machine: points of collectives, products, attention and streams.

Every point knows its ``where``: file and line.
"""

from dataclasses import dataclass, field

from costmodel.calibration.case import Case
from costmodel.model.placement import Collective


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectivePoint:
    """One collective of ``ranks`` chips on ``nodes`` nodes.

    payload_bytes: the whole tensor, as nccl-tests counts its size (all-gather: the result;
    reduce-scatter: the input; all-to-all: what one rank sends).
    """

    where: str
    collective: Collective
    ranks: int
    nodes: int
    payload_bytes: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmPoint:
    """``batch`` products of (m, k) and (k, n)."""

    where: str
    m: float
    n: float
    k: float
    batch: float
    precision: str
    seconds: float

    @property
    def flop_per_s(self) -> float:
        """Arithmetic over time: ``2 m n k batch / t``."""
        return 2.0 * self.m * self.n * self.k * self.batch / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionPoint:
    """Forward of an attention core; ``causal`` ones count half of the square."""

    where: str
    batch: float
    heads: float
    sequence: float
    head_dim: float
    causal: bool
    precision: str
    seconds: float

    @property
    def flop_per_s(self) -> float:
        """``4 b a s^2 d k / t`` with k one half where causal."""
        return attention_flop(self) / self.seconds


def attention_flop(point: AttentionPoint) -> float:
    """FLOPs of an attention core's forward."""
    square = 4.0 * point.batch * point.heads * point.sequence**2 * point.head_dim
    return square * (0.5 if point.causal else 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPoint:
    """A kernel bound by memory: bytes read and written together."""

    where: str
    moved_bytes: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """A file that was recognised. kind: what it holds. points: usable ones."""

    path: str
    kind: str
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """All that the files hold."""

    files: tuple[FileRead, ...] = ()
    collectives: tuple[CollectivePoint, ...] = ()
    gemms: tuple[GemmPoint, ...] = ()
    attention: tuple[AttentionPoint, ...] = ()
    streams: tuple[StreamPoint, ...] = ()
    cases: tuple[Case, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A fitted number. relative_sd: standard deviation of its logarithm. points: that tell it."""

    value: float
    relative_sd: float
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """Signed relative errors of the fitted law: predicted / measured - 1 of every point."""

    median: float
    p90: float
    worst: float
    worst_where: str
    n: int = field(default=0)
