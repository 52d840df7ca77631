"""Degrees of a stage: its options up to ZeRO and recompute mode, which balancing picks."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from costmodel.layout.values import StageOption
from planner.arrays import IntArray
from planner.instance import Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """One way to split a stage over chips of one pool.

    rows: table rows of its modes, the least ZeRO stage first.
    lean: those of the highest ZeRO stage, which hold the most layers.
    replicas: data parallelism inside the stage, 1 where an expert group asks for them.
    rate: chip-seconds per sequence of one average layer under the fastest mode, to rank degrees.
    """

    pool: int
    num_chips: int
    samples: int
    rows: tuple[int, ...]
    lean: tuple[int, ...]
    replicas: int
    rate: float


def options_replicas(option: StageOption) -> int:
    """Replicas that could as well be further pipelines; 1 where expert parallelism needs them."""
    return 1 if option.ep > 1 else option.replicas


def _key(option: StageOption) -> StageOption:
    return replace(option, zero=1, recompute="none")


@lru_cache(maxsize=8)
def degrees(instance: Instance) -> tuple[Degrees, ...]:
    """All degrees of the space, best rate first; ties by row."""
    table = instance.table
    groups: dict[StageOption, list[int]] = {}
    for row, option in enumerate(table.options):
        if option.zero <= instance.largest_zero:
            groups.setdefault(_key(option), []).append(row)
    work = (table.layers.forward_s + table.layers.backward_s)[:, -1] / table.num_layers
    found: list[Degrees] = []
    for rows in groups.values():
        chips, samples = int(table.num_chips[rows[0]]), int(table.samples[rows[0]])
        fastest = float(min(work[row] for row in rows))
        found.append(
            Degrees(
                pool=int(table.pool_index[rows[0]]),
                num_chips=chips,
                samples=samples,
                replicas=options_replicas(table.options[rows[0]]),
                rows=tuple(sorted(rows, key=lambda r: (table.options[r].zero, work[r]))),
                lean=_lean(table.options, rows),
                rate=fastest * chips / samples,
            )
        )
    return tuple(sorted(found, key=lambda d: (d.rate, d.rows)))


def _lean(options: tuple[StageOption, ...], rows: list[int]) -> tuple[int, ...]:
    most = max(options[row].zero for row in rows)
    return tuple(row for row in rows if options[row].zero == most)


def mode_rows(parts: tuple[tuple[Degrees, int], ...], *, lean: bool) -> IntArray:
    """Rows that each stage may run, (stages, modes), padded with -1."""
    modes = [(d.lean if lean else d.rows, stages) for d, stages in parts]
    width = max(len(rows) for rows, _ in modes)
    lines = [
        [*rows, *([-1] * (width - len(rows)))] for rows, stages in modes for _ in range(stages)
    ]
    return np.array(lines, np.int64)


def best_of_pool(instance: Instance, pool: int, samples: int, limit: int) -> tuple[Degrees, ...]:
    """The ``limit`` best degrees of a pool at so many sequences per micro-batch."""
    matching = (d for d in degrees(instance) if d.pool == pool and d.samples == samples)
    return tuple(matching)[:limit]


def slowest_pool(instance: Instance) -> int:
    """The pool whose best option needs most chip-seconds per layer and sequence; 0 if none has."""
    rates: dict[int, float] = {}
    for d in degrees(instance):
        rates[d.pool] = min(d.rate, rates.get(d.pool, float("inf")))
    return max(rates, key=lambda pool: (rates[pool], pool), default=0)


def sample_sizes(instance: Instance) -> tuple[int, ...]:
    """Sequences per micro-batch that options offer and that divide the batch."""
    sizes = {d.samples for d in degrees(instance)}
    return tuple(sorted(s for s in sizes if instance.batch % s == 0))
