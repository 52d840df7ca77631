"""The rules against a second statement of what is legal, on layouts that mostly are not."""

from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.layout import rules
from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from costmodel.model.graph import ModelGraph
from tests.layout.problems import (
    DENSE_CONFIG,
    SEQUENCE,
    SPARSE_CONFIG,
    cluster,
    model,
    pool_document,
    problem,
)

DENSE, SPARSE = model(DENSE_CONFIG), model(SPARSE_CONFIG)
CLUSTER = cluster(pool_document("a", 2))
small = st.sampled_from([1, 1, 1, 2, 2, 3, 4, 6])


@st.composite
def options(draw: st.DrawFn, sparse: bool) -> StageOption:
    return StageOption(
        pool=draw(st.sampled_from(["a", "a", "a", "a", "z"])),
        tp=draw(small),
        cp=draw(st.sampled_from([1, 1, 2, 3])),
        ep=draw(st.sampled_from([1, 2, 4, 5])) if sparse else draw(st.sampled_from([1, 1, 1, 2])),
        etp=draw(st.sampled_from([1, 1, 2])) if sparse else 1,
        replicas=draw(st.sampled_from([1, 2])),
        micro_batch_size=draw(st.sampled_from([1, 2])),
        sequence_parallel=draw(st.sampled_from([True, True, False])),
        zero=draw(st.sampled_from([1, 1, 1, 2])),
    )


@st.composite
def layouts(draw: st.DrawFn, sparse: bool) -> Layout:
    pipelines: list[Pipeline] = []
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        size = draw(st.sampled_from([1, 1, 2]))
        cut = draw(st.sampled_from([4, 4, 3, 0, 8]))
        edges = [0, 8] if size == 1 else [0, cut, 8]
        same = draw(st.booleans())
        option = draw(options(sparse))
        stages = tuple(
            Stage(
                option=option if same else draw(options(sparse)),
                chunks=((edges[i], edges[i + 1]),),
                embedding=i == 0,
                head=i == size - 1,
                mtp=1 if sparse and i == size - 1 else 0,
            )
            for i in range(size)
        )
        pipelines.append(Pipeline(stages=stages, microbatches=4, count=1))
    return Layout(pipelines=tuple(pipelines))


def stage_is_legal(graph: ModelGraph, stage: Stage) -> bool:
    o, sparse = stage.option, graph is SPARSE
    heads, kv_heads, ffn = 16, 8, 4096
    holds_dense = any(layer < 2 for layer in stage.layers) or not sparse
    widths = [heads] if stage.layers or stage.mtp else []
    widths += [kv_heads] if stage.layers and not sparse else []
    widths += [ffn] if stage.layers and holds_dense else []
    holds_sparse = sparse and (any(layer >= 2 for layer in stage.layers) or stage.mtp > 0)
    widths += [512] if holds_sparse else []
    return (
        o.pool == "a"
        and not any(width % o.tp for width in widths)
        and (o.cp == 1 or SEQUENCE % (2 * o.cp) == 0)
        and (not o.sequence_parallel or o.tp == 1 or SEQUENCE % (o.tp * o.cp) == 0)
        and (not sparse or o.tp == 1 or o.sequence_parallel)
        and (16 % o.ep == 0 if sparse else o.ep == 1)
        and o.num_chips % (o.ep * o.etp) == 0
    )


def is_legal(graph: ModelGraph, layout: Layout) -> bool:
    stages = [s for p in layout.pipelines for s in p.stages]
    samples = [{s.option.samples for s in p.stages} for p in layout.pipelines]
    layers = {layer for s in stages for layer in s.layers}
    zeros = [{s.option.zero for s in stages if layer in s.layers} for layer in layers]
    groups = [s.option.tp for s in stages for _ in range(s.option.cp * s.option.replicas)]
    return (
        all(stage_is_legal(graph, stage) for stage in stages)
        and all(len(found) == 1 for found in (*samples, *zeros))
        and packs(tuple(sorted(groups, reverse=True)), (8, 8))
    )


def packs(groups: tuple[int, ...], room: tuple[int, ...]) -> bool:
    """Whether the groups fit into the nodes, by trying everything."""
    if not groups:
        return True
    if sum(groups) > sum(room):
        return False
    return any(
        packs(groups[1:], (*room[:i], free - groups[0], *room[i + 1 :]))
        for i, free in enumerate(room)
        if free >= groups[0] and free not in room[:i]
    )


def agree(graph: ModelGraph, layout: Layout) -> None:
    found = rules.violations(problem(graph, CLUSTER, global_batch_size=layout.samples), layout)

    assert (found == ()) == is_legal(graph, layout), found


@settings(max_examples=300)
@given(layouts(sparse=False))
def test_dense_rules_agree_with_the_twin(layout: Layout) -> None:
    agree(DENSE, layout)


@settings(max_examples=300)
@given(layouts(sparse=True))
def test_sparse_rules_agree_with_the_twin(layout: Layout) -> None:
    agree(SPARSE, layout)
