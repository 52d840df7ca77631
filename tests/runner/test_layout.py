"""Rank table, shards and gradient groups by hand."""

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from costmodel.layout.ranks import members, rank_table, stage_ranks
from costmodel.layout.shards import Holding, gradient_groups, holdings
from costmodel.layout.values import Layout, Pipeline
from costmodel.model.graph import ModelGraph
from tests.runner.tiny import GPT, LLAMA, MOE, job, model, option, pipeline

MIXED = model([LLAMA, MOE])


def test_ranks_run_through_pipelines_copies_stages_replicas_cp_and_tp() -> None:
    layout = Layout(
        pipelines=(
            pipeline((1, option(tp=2, cp=2, replicas=2, ep=4)), (1, option(tp=2)), count=2),
            pipeline((2, option())),
        )
    )

    table = rank_table(layout)

    assert [r.rank for r in table] == list(range(21))
    assert [(r.copy, r.stage) for r in table[:20:2]] == [
        (0, 0), (0, 0), (0, 0), (0, 0), (0, 1), (1, 0), (1, 0), (1, 0), (1, 0), (1, 1),
    ]  # fmt: skip
    assert [(r.replica, r.cp, r.tp) for r in table[:4]] == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
        (0, 1, 1),
    ]
    assert [(r.expert_data, r.ep) for r in table[:8]] == [(i // 4, i % 4) for i in range(8)]
    assert table[20].instance == (1, 0, 0)


def test_groups_of_one_stage() -> None:
    layout = Layout(pipelines=(pipeline((2, option(tp=2, cp=2, replicas=2, ep=2, etp=2))),))
    ranks = stage_ranks(rank_table(layout))[0, 0, 0]

    def of(kind: str) -> list[tuple[int, ...]]:
        return [tuple(r.rank for r in group) for group in members(ranks, kind)]

    assert of("tp") == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert of("cp") == [(0, 2), (1, 3), (4, 6), (5, 7)]
    assert of("etp") == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert of("ep") == [(0, 2), (1, 3), (4, 6), (5, 7)]


def held(graph: ModelGraph, *pipelines: Pipeline) -> dict[tuple[int, str], Holding]:
    layout = Layout(pipelines=pipelines)
    return {(h.rank, h.parameter): h for h in holdings(graph, layout, job(layout))}


def test_boxes_of_dense_and_expert_weights() -> None:
    found = held(MIXED, pipeline((2, option(tp=2, replicas=2, ep=2, etp=2))))

    assert found[1, "layers.0.q.weight"].box == ((2, 4), (0, 4), (0, 16))
    assert found[2, "layers.0.q.weight"].box == ((0, 2), (0, 4), (0, 16))
    assert found[1, "layers.1.experts.down"].box == ((0, 4), (0, 16), (6, 12))
    assert found[2, "layers.1.experts.down"].box == ((4, 8), (0, 16), (0, 6))
    assert found[1, "embedding.embedding.table"].box == ((19, 38), (0, 16))


def test_equal_gradients_are_not_counted_twice() -> None:
    plain, wide = option(tp=2, sequence_parallel=False), option(tp=4, sequence_parallel=False)
    name = "layers.0.attention_norm.scale"
    graph = model([GPT])

    alone = held(graph, pipeline((1, plain)))
    both = held(graph, pipeline((1, plain)), pipeline((1, wide)))
    mixed = held(graph, pipeline((1, wide)), pipeline((1, option(tp=2))))

    assert [(alone[r, name].lane, alone[r, name].share) for r in range(2)] == [(0, 1.0), (1, 1.0)]
    assert [(both[r, name].lane, both[r, name].share) for r in range(6)] == [
        (0, 1.0), (1, 1.0), (0, 0.5), (0, 0.5), (1, 0.5), (1, 0.5),
    ]  # fmt: skip
    assert [(mixed[r, name].lane, mixed[r, name].share) for r in range(6)] == [
        (0, 0.25), (0, 0.25), (0, 0.25), (0, 0.25), (0, 1.0), (0, 1.0),
    ]  # fmt: skip


def test_refinement_over_two_degrees() -> None:
    layout = Layout(pipelines=(pipeline((1, option(tp=2))), pipeline((1, option()))))
    groups = gradient_groups(model([LLAMA]), layout, job(layout))

    ranks = {group.ranks for group in groups}
    assert ranks == {(0, 2), (1, 2), (0, 1, 2)}
    gate = [
        (g.ranks, a.box) for g in groups for a in g.atoms if a.parameter == "layers.0.gate.weight"
    ]
    assert gate == [((0, 2), ((0, 12), (0, 16))), ((1, 2), ((12, 24), (0, 16)))]


@given(
    degrees=st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=3),
    tied=st.booleans(),
    parallel=st.booleans(),
)
def test_atoms_cover_every_parameter_once(degrees: list[int], tied: bool, parallel: bool) -> None:
    graph = model([LLAMA, MOE], tied=tied)
    chosen = [option(tp=min(t, 2), replicas=2, ep=t, sequence_parallel=parallel) for t in degrees]
    pipelines = tuple(pipeline((1, o), (1, o)) for o in chosen)
    layout = Layout(pipelines=pipelines)

    sizes = {h.parameter: prod(h.sizes) for h in holdings(graph, layout, job(layout))}
    lanes = {(h.parameter, h.lane) for h in holdings(graph, layout, job(layout))}
    covered = dict.fromkeys(sizes, 0)
    for group in gradient_groups(graph, layout, job(layout)):
        for atom in group.atoms:
            covered[atom.parameter] += atom.elements

    for name, size in sizes.items():
        assert covered[name] == size * sum(parameter == name for parameter, _ in lanes)
