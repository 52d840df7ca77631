"""Which stages hold each run of layers: the groups over which gradients are summed."""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from costmodel.layout.values import Layout, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Consecutive layers that the same stages hold, one of each pipeline.

    start, stop: half-open layer range. holders: (pipeline, stage) indices.
    """

    start: int
    stop: int
    holders: tuple[tuple[int, int], ...]

    @property
    def num_layers(self) -> int:
        """Layers, or 1 of an end block, whose ``start`` and ``stop`` are alike."""
        return max(1, self.stop - self.start)


def segments(layout: Layout) -> tuple[Segment, ...]:
    """Common refinement of all pipelines' layer ranges, in layer order."""
    stages = list(_indexed(layout))
    cuts = sorted({edge for _, stage in stages for chunk in stage.chunks for edge in chunk})
    place = {cut: n for n, cut in enumerate(cuts)}
    held: list[dict[tuple[int, int], None]] = [{} for _ in cuts]
    for index, stage in stages:
        for start, stop in stage.chunks:
            for n in range(place[start], place[stop]):
                held[n][index] = None
    return tuple(
        Segment(start=start, stop=stop, holders=tuple(holders))
        for (start, stop), holders in zip(itertools.pairwise(cuts), held, strict=False)
    )


def _indexed(layout: Layout) -> Iterable[tuple[tuple[int, int], Stage]]:
    for d, pipeline in enumerate(layout.pipelines):
        for i, stage in enumerate(pipeline.stages):
            yield (d, i), stage


def data_parallel_ranks(layout: Layout, holders: Iterable[tuple[int, int]]) -> int:
    """Ranks that share a dense weight: sum of count x replicas x cp over its holders."""
    total = 0
    for d, i in holders:
        option = layout.pipelines[d].stages[i].option
        total += layout.pipelines[d].count * option.replicas * option.cp
    return total


def expert_data_parallel_ranks(layout: Layout, holders: Iterable[tuple[int, int]]) -> int:
    """Ranks that share an expert weight: sum of count x chips / (ep etp) over its holders."""
    total = 0
    for d, i in holders:
        option = layout.pipelines[d].stages[i].option
        total += layout.pipelines[d].count * option.num_chips // (option.ep * option.etp)
    return total
