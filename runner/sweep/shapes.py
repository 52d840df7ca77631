"""What a sweep measures, and in how much time."""

from dataclasses import dataclass

MIB = 2**20

CPU, CUDA, AUTO = "cpu", "cuda", "auto"
DEVICES = (CPU, CUDA)

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One sweep. device: ``auto`` is CUDA where there is some. ranks: processes of a collective,
    0 until the device is known."""

    device: str
    quick: bool
    ranks: int = 0

    @property
    def budget_s(self) -> float:
        """Seconds of one kind of benchmarks."""
        return QUICK_BUDGET_S if self.quick else BUDGET_S

    @property
    def limit_s(self) -> float:
        """Seconds after which a process is stopped: four kinds, and the start of torch."""
        return 4.0 * self.budget_s + START_S


START_S = 90.0
"""For loading torch and starting NCCL on a busy machine."""

BUDGET_S, QUICK_BUDGET_S = 13.0, 1.2
"""Four kinds of benchmarks: about a minute, or ten seconds, and the start of the processes."""


def precisions(settings: Settings) -> tuple[str, ...]:
    """Of the products. FP8 is left out: torch has no public product of it."""
    if settings.device == CUDA:
        return ("bf16", "fp16", "fp32")
    return ("fp32",) if settings.quick else ("fp32", "bf16")


def gemm_shapes(settings: Settings) -> list[tuple[int, int, int]]:
    """(m, n, k), the most telling ones first: large squares, then few rows, then thin ones."""
    top = 8192 if settings.device == CUDA else 1024 if settings.quick else 2048
    squares = [(size, size, size) for size in (top, top // 2, top // 4, top // 8)]
    rows = [(top // part, top // 2, top // 2) for part in (64, 32, 16, 8)]
    thin = [(top // 2, top // 16, top // 2), (top // 2, top // 2, top // 16)]
    largest = [(2 * top, top, top)] if settings.device == CUDA else []
    return [*squares, *rows, *thin, *largest]


def attention_shapes(settings: Settings) -> list[tuple[int, int, int, int]]:
    """(batch, heads, sequence, head dimension)."""
    if settings.device == CUDA:
        return [(4, 32, 4096, 128), (2, 32, 8192, 128), (16, 32, 1024, 128), (32, 32, 512, 128)]
    lengths = (512, 256, 128) if settings.quick else (1024, 512, 2048, 256, 128)
    return [(1, 8, length, 64) for length in lengths]


def stream_bytes(settings: Settings) -> list[int]:
    """Sizes of one of the three arrays of a stream; larger than caches."""
    if settings.device == CUDA:
        return [1024 * MIB, 512 * MIB, 256 * MIB]
    return [64 * MIB] if settings.quick else [256 * MIB, 128 * MIB, 64 * MIB]


def payload_bytes(settings: Settings) -> list[int]:
    """Sizes of the whole tensor of a collective, the largest and the smallest first."""
    top = 30 if settings.device == CUDA else 24 if settings.quick else 26
    powers = [*range(12, top + 1, 2)]
    ends = [power for pair in zip(reversed(powers), powers, strict=True) for power in pair]
    return [2**power for power in dict.fromkeys(ends)]
