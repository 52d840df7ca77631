"""The rank table: which global rank has which coordinates. A pure function of a layout.

Order, slowest first: pipeline, copy, stage, replica, cp, tp. Inside a stage the expert grid folds
over the same ranks in the same order: expert_data, ep, etp (etp fastest). The table never changes
with a version, because checkpoints and launch files refer to it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from costmodel.layout.values import Layout, StageOption

GROUP_COORDINATES = {
    "tp": ("replica", "cp"),
    "cp": ("replica", "tp"),
    "ep": ("expert_data", "etp"),
    "etp": ("expert_data", "ep"),
}
"""Group kind -> coordinates, besides those of the stage, that its members share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Coordinates of one global rank.

    pipeline, copy: which pipeline of the layout and which of its identical copies.
    stage: position in the pipeline. replica, cp, tp: position inside the stage.
    expert_data, ep, etp: the same position in the expert grid.
    """

    rank: int
    pipeline: int
    copy: int
    stage: int
    replica: int
    cp: int
    tp: int
    expert_data: int
    ep: int
    etp: int

    @property
    def instance(self) -> tuple[int, int, int]:
        """Pipeline, copy and stage: one group of chips."""
        return self.pipeline, self.copy, self.stage


def rank_table(layout: Layout) -> tuple[Rank, ...]:
    """All ranks of a layout, in rank order."""
    return tuple(_ranks(layout))


def _ranks(layout: Layout) -> Iterator[Rank]:
    rank = 0
    for p, pipeline in enumerate(layout.pipelines):
        for copy in range(pipeline.count):
            for s, stage in enumerate(pipeline.stages):
                for local in range(stage.option.num_chips):
                    yield _rank(rank, (p, copy, s), local, stage.option)
                    rank += 1


def _rank(rank: int, instance: tuple[int, int, int], local: int, option: StageOption) -> Rank:
    rest, tp = divmod(local, option.tp)
    replica, cp = divmod(rest, option.cp)
    rest, etp = divmod(local, option.etp)
    expert_data, ep = divmod(rest, option.ep)
    return Rank(
        rank=rank,
        pipeline=instance[0],
        copy=instance[1],
        stage=instance[2],
        replica=replica,
        cp=cp,
        tp=tp,
        expert_data=expert_data,
        ep=ep,
        etp=etp,
    )


def stage_ranks(table: Sequence[Rank]) -> dict[tuple[int, int, int], tuple[Rank, ...]]:
    """Ranks of each stage instance: (pipeline, copy, stage) -> its ranks in order."""
    found: dict[tuple[int, int, int], tuple[Rank, ...]] = {}
    for rank in table:
        found[rank.instance] = (*found.get(rank.instance, ()), rank)
    return found


def members(ranks: Sequence[Rank], kind: str) -> tuple[tuple[Rank, ...], ...]:
    """The groups of one kind among the ranks of one stage instance, also those of one member."""
    found: dict[tuple[int, ...], tuple[Rank, ...]] = {}
    for rank in ranks:
        key = tuple(getattr(rank, name) for name in GROUP_COORDINATES[kind])
        found[key] = (*found.get(key, ()), rank)
    return tuple(found.values())
