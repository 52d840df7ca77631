"""Reading of layout documents and of the inline form."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError, UnsafeDocumentError
from costmodel.estimate_document import estimate_document
from costmodel.estimation import estimate
from costmodel.layout.read import load_layout, read_inline
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from tests.layout.problems import (
    DENSE_CONFIG,
    SPARSE_CONFIG,
    cluster,
    legal_layouts,
    model,
    pool_document,
    problem,
)

DENSE, SPARSE = model(DENSE_CONFIG), model(SPARSE_CONFIG)
TWO_POOLS = cluster(pool_document("a", 4), pool_document("b", 2))
ONE_POOL = cluster(pool_document("a", 2))


def faults(problem: Problem, source: Any) -> list[str]:
    """Every violation of a layout that is refused, as text."""
    with pytest.raises(InputError, match=r".") as caught:
        load_layout(problem, source)
    return [str(violation) for violation in caught.value.violations]


def shape(layout: Layout) -> list[tuple[int, int, list[tuple[str, int]]]]:
    """(count, micro-batches, [(pool, layers) of each stage]) of each pipeline."""
    return [
        (p.count, p.microbatches, [(s.option.pool, s.num_layers) for s in p.stages])
        for p in layout.pipelines
    ]


def stage_document(**changes: Any) -> dict[str, Any]:
    return {"pool": "a", "chunks": [[0, 8]], **changes}


def document(*stages: dict[str, Any], **pipeline: Any) -> dict[str, Any]:
    return {"pipelines": [{"count": 1, "microbatches": 256, "stages": list(stages), **pipeline}]}


@given(legal_layouts(SPARSE, TWO_POOLS))
def test_layout_of_an_estimate_reads_back(layout: Layout) -> None:
    where = problem(SPARSE, TWO_POOLS, global_batch_size=layout.samples)
    written = json.loads(json.dumps(estimate_document(estimate(*parts(where), layout))))
    kept = {key: written[key] for key in ("pipelines", "schedule")}

    assert load_layout(where, kept) == layout


def parts(where: Problem) -> tuple[Any, Any, Any]:
    return where.model, where.cluster, where.job


def test_layout_of_a_plan_reads_without_its_other_parts() -> None:
    plan: dict[str, Any] = {
        "schema": "haplan.plan/v1",
        "id": "x",
        "bound": {},
        **document(stage_document()),
    }

    assert shape(load_layout(problem(), plan)) == [(1, 256, [("a", 8)])]


def test_ends_and_sequence_parallelism_follow_from_position_and_tp() -> None:
    stages = (stage_document(chunks=[[0, 4]], tp=2), stage_document(chunks=[[4, 8]]))
    layout = load_layout(problem(SPARSE), document(*stages))
    first, last = layout.pipelines[0].stages

    assert (first.embedding, first.head, first.mtp) == (True, False, 0)
    assert (last.embedding, last.head, last.mtp) == (False, True, 1)
    assert (first.option.sequence_parallel, last.option.sequence_parallel) == (True, False)


def test_misspelt_and_mistyped_fields_come_at_once() -> None:
    bad = document(stage_document(replica=2, tp="8", zero="1"), micro_batches=3)
    found = "\n".join(faults(problem(), bad))

    assert (
        "/pipelines/0/stages/0/replica: is not a field here, got 2; did you mean replicas" in found
    )
    assert "/pipelines/0/stages/0/tp" in found
    assert "/pipelines/0/stages/0/zero" in found
    assert "/pipelines/0/micro_batches: is not a field here" in found


@pytest.mark.parametrize(
    "source",
    [
        "tp=3,zero=7,recompute=some",
        document(stage_document(tp=3, zero=7, recompute={"mode": "some"})),
    ],
)
def test_values_out_of_range_do_not_hide_other_rules(source: Any) -> None:
    found = "\n".join(faults(problem(where=ONE_POOL), source))

    assert "must divide the 16 attention heads" in found
    assert "must be a ZeRO stage, 0 to 3, got 7; use zero 3" in found
    assert "must be a known recompute mode, got 'some'" in found


def test_layout_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "layout.yaml"
    path.write_text("pipelines: [{microbatches: 256, stages: [{pool: a, chunks: [[0, 8]]}]}]\n")

    assert shape(load_layout(problem(), path)) == [(1, 256, [("a", 8)])]
    assert load_layout(problem(), str(path)) == load_layout(problem(), path)


def test_hostile_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "layout.yaml"
    path.write_text("a: &a [1]\nb: *a\n")

    with pytest.raises(UnsafeDocumentError, match="anchors"):
        load_layout(problem(), path)


def test_uniform_layout_on_one_pool() -> None:
    layout = load_layout(problem(where=ONE_POOL), "tp=4,pp=2,dp=2,mbs=2,zero=2,recompute=full")
    option = layout.pipelines[0].stages[1].option

    assert shape(layout) == [(2, 64, [("a", 4), ("a", 4)])]
    assert (option.tp, option.micro_batch_size, option.zero) == (4, 2, 2)
    assert (option.recompute, option.sequence_parallel) == ("full", True)


def test_document_of_too_many_stages_is_refused() -> None:
    stages = [stage_document(chunks=[[i, i + 1]]) for i in range(1500)]
    pipeline = {"microbatches": 1, "stages": stages}

    with pytest.raises(InputError, match="must have at most 2048 stages"):
        load_layout(problem(), {"pipelines": [pipeline, pipeline]})


def test_stages_lie_over_the_pools_in_order() -> None:
    layout = load_layout(problem(where=TWO_POOLS), "tp=8,pp=3,dp=2,mbs=1")

    assert shape(layout) == [(2, 128, [("a", 2), ("a", 3), ("b", 3)])]


def test_stage_must_not_straddle_pools() -> None:
    (fault,) = faults(problem(where=TWO_POOLS), "tp=8,pp=1,dp=6,mbs=1,outer=pp")[:1]

    assert fault.startswith("/pp: must not let a stage straddle pools: stage 0 takes 48 chips")
    assert "outer=dp" in fault


def test_whole_pipelines_lie_over_the_pools() -> None:
    where = problem(where=TWO_POOLS, global_batch_size=240)
    layout = load_layout(where, "tp=8,pp=1,dp=6,mbs=1,outer=dp")

    assert shape(layout) == [(4, 40, [("a", 8)]), (2, 40, [("b", 8)])]


def test_pools_may_be_chosen() -> None:
    layout = load_layout(problem(where=TWO_POOLS), "tp=8,pp=2,pools=b/a")

    assert shape(layout) == [(1, 256, [("b", 4), ("b", 4)])]
    assert "did you mean" in faults(problem(where=TWO_POOLS), "tp=8,pools=bb")[0]


def test_too_many_chips_say_how_many_would_do() -> None:
    (fault,) = faults(problem(where=ONE_POOL), "tp=4,pp=2,dp=4")

    assert "x tp x cp x pp = 32 chips must be at most the 16" in fault
    assert "use dp 2" in fault


@pytest.mark.parametrize("ep", [1, 2, 4, 8])
def test_expert_grid_folds_over_the_fewest_replicas(ep: int) -> None:
    layout = load_layout(problem(SPARSE, ONE_POOL), f"tp=2,dp=8,ep={ep}")
    pipeline = layout.pipelines[0]
    option = pipeline.stages[0].option

    assert option.replicas == max(1, ep // 2)
    assert pipeline.count * option.replicas == 8


def test_job_chooses_what_the_line_leaves_open() -> None:
    where = problem(where=ONE_POOL, micro_batch_size=4, recompute="full", schedule="gpipe")
    layout = load_layout(where, "tp=4,dp=2")
    option = layout.pipelines[0].stages[0].option

    assert (option.micro_batch_size, option.recompute) == (4, "full")
    assert layout.schedule.kind == "gpipe"


def test_virtual_stages_are_dealt_round_robin() -> None:
    layout = load_layout(problem(where=ONE_POOL), "tp=8,pp=2,vp=2")

    assert layout.schedule.kind == "interleaved"
    assert [s.chunks for s in layout.pipelines[0].stages] == [
        ((0, 2), (4, 6)),
        ((2, 4), (6, 8)),
    ]


@pytest.mark.parametrize(
    ("line", "layers"),
    [
        ("pp=3", [2, 3, 3]),
        ("pp=3,layers=4/3/1", [4, 3, 1]),
        ("pp=3,first=1", [1, 3, 4]),
        ("pp=3,first=2,last=1", [2, 5, 1]),
        ("pp=3,layout=Et*2|t*5,|tL", [2, 5, 1]),
        ("pp=4,layers=even", [2, 2, 2, 2]),
    ],
)
def test_layers_may_be_given(line: str, layers: list[int]) -> None:
    layout = load_layout(problem(where=cluster(pool_document("a", 1))), line)

    assert [s.num_layers for s in layout.pipelines[0].stages] == layers


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("pp=3,layers=even", "use pp x vp 2 or 4, or 1 x 2, 2 x 3 without layers=even"),
        ("pp=3,layers=4/3/2", "for example 2/3/3"),
        ("pp=3,layers=x/y", "must be 3 numbers"),
        ("pp=3,first=8", "must leave layers for all 3 stages"),
        ("pp=3,first=2,layers=even", "must be the only one of"),
        ("pp=3,layout=Et*4|t*4|L|", "must have 3 stages"),
        ("pp=2,layout=Et*8|LL", "must have one L to be estimated"),
        ("pp=2,pp=2", "must be given once"),
        ("pp=2,tq=2", "did you mean tp"),
        ("pp=2,tp", "must be written as field=value"),
        ("pp=two", "/pp"),
        ("pp=2,zero=4", "/zero"),
        ("pp=2,recompute=some", "/recompute"),
        ("tp=99999999999999999999", "/tp"),
        ("pp=4000,vp=4000", "x vp must be at most 4096"),
        ("pp=3,tp=8,outer=dp,dp=1", "lower tp, cp or pp"),
    ],
)
def test_bad_lines_say_what_to_write(line: str, fault: str) -> None:
    assert any(fault in text for text in faults(problem(where=ONE_POOL), line))


def test_uneven_split_and_other_rules_come_at_once() -> None:
    found = faults(problem(where=TWO_POOLS), "tp=3,pp=3,dp=5,layers=even")
    fields = {text.split(":")[0] for text in found}

    assert fields >= {"/pp", "/pipelines/0/stages/0/tp", "/pipelines"}


def test_line_is_read_whatever_its_spaces() -> None:
    assert read_inline(" tp = 2 , sp=off ").sp is False
    assert read_inline("tp=2").mbs is None


@given(st.text(alphabet="tpdmbsclayous=0123456789,/|*()EtmL ", max_size=60))
def test_any_line_is_read_or_refused(line: str) -> None:
    try:
        layout = load_layout(problem(where=ONE_POOL), f"tp=1,{line}")
    except InputError:
        return
    assert layout.samples == 256
