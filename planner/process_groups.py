"""The process groups of a layout and what each of them runs over."""

from collections.abc import Iterator
from itertools import combinations

from costmodel.hardware.connection import Connection, connection
from costmodel.hardware.values import Cluster
from costmodel.holders import data_parallel_ranks, segments
from costmodel.layout.values import Layout, StageOption
from costmodel.model.placement import Collective
from costmodel.network.groups import group_link
from planner.values import Group


def process_groups(cluster: Cluster, layout: Layout) -> tuple[Group, ...]:
    """Groups of every kind that have more than one member, in a fixed order."""
    return (
        *_inner_groups(cluster, layout),
        *_pipeline_groups(cluster, layout),
        *_data_groups(cluster, layout),
    )


def _inner_groups(cluster: Cluster, layout: Layout) -> Iterator[Group]:
    """Tensor, context and expert groups inside a stage: consecutive chips, some apart."""
    for d, pipeline in enumerate(layout.pipelines):
        for i, stage in enumerate(pipeline.stages):
            option = stage.option
            kinds = (
                ("tp", option.tp, 1),
                ("cp", option.cp, option.tp),
                ("ep", option.ep, option.etp),
            )
            for kind, size, stride in kinds:
                if size > 1:
                    yield _inside(cluster, option, kind, size, stride, ((d, i),))


def _inside(
    cluster: Cluster,
    option: StageOption,
    kind: str,
    size: int,
    stride: int,
    stages: tuple[tuple[int, int], ...],
) -> Group:
    pool = cluster.pool(option.pool)
    collective = Collective.ALL_TO_ALL if kind == "ep" else Collective.ALL_REDUCE
    spans = group_link(pool, size, stride, collective).nodes
    path = connection(cluster, option.pool, option.pool, same_domain=spans == 1)
    return _group(kind, stages, size, path)


def _group(kind: str, stages: tuple[tuple[int, int], ...], size: int, path: Connection) -> Group:
    return Group(
        kind=kind,
        stages=stages,
        size=size,
        link="+".join(path.links),
        transport=path.transport,
        nics=path.nics,
    )


def _pipeline_groups(cluster: Cluster, layout: Layout) -> Iterator[Group]:
    for d, pipeline in enumerate(layout.pipelines):
        for i in range(len(pipeline.stages) - 1):
            a, b = (pipeline.stages[i + k].option.pool for k in range(2))
            pool = cluster.pool(a)
            inside = a == b and pool.num_chips <= pool.scale_up_domain
            path = connection(cluster, a, b, same_domain=inside)
            yield _group("pp", ((d, i), (d, i + 1)), 2, path)


def _data_groups(cluster: Cluster, layout: Layout) -> Iterator[Group]:
    """One group for each set of stages that share layers, over the slowest pair of their pools."""
    seen: set[tuple[tuple[int, int], ...]] = set()
    for segment in segments(layout):
        if segment.holders in seen:
            continue
        seen.add(segment.holders)
        size = data_parallel_ranks(layout, segment.holders)
        options = [layout.pipelines[d].stages[i].option for d, i in segment.holders]
        pools = tuple(dict.fromkeys(option.pool for option in options))
        if size < 2:
            continue
        if len(pools) == 1:
            stride = max(option.tp for option in options)
            yield _inside(cluster, options[0], "dp", size, stride, segment.holders)
        else:
            paths = [connection(cluster, a, b) for a, b in combinations(pools, 2)]
            slowest = min(paths, key=lambda path: path.chip_bytes_per_s)
            yield _group("dp", segment.holders, size, slowest)
