"""Estimates: their terms add up, and what does not fit is told with a way out."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given

import costmodel
from costmodel.errors import InputError
from costmodel.estimate_document import MEMORY_TERMS
from costmodel.estimation import Estimate, estimate, memory_warnings
from costmodel.evaluation import Evaluation
from costmodel.layout.values import Layout
from costmodel.model.read import load_model
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
CLUSTER = cluster(pool_document("a", 4), pool_document("b", 2))


def estimated(graph: Any, layout: Layout | str, **job: Any) -> Estimate:
    if isinstance(layout, Layout):
        job.setdefault("global_batch_size", layout.samples)
    return estimate(*parts(problem(graph, CLUSTER, **job)), layout)


def parts(where: Problem) -> tuple[Any, Any, Any]:
    return where.model, where.cluster, where.job


def adds_up(document: Any) -> None:
    prediction = document["prediction"]
    assert sum(prediction["breakdown"].values()) == pytest.approx(prediction["step_time_s"])
    assert min(prediction["breakdown"].values()) >= -1e-9 * prediction["step_time_s"]
    for stage in document["stages"]:
        memory, time = stage["memory"], stage["time"]
        assert sum(memory[term] for term in MEMORY_TERMS) == pytest.approx(memory["peak"])
        assert memory["missing"] == pytest.approx(max(0.0, memory["peak"] - memory["capacity"]))
        whole = time["end_s"] + time["wait_s"] + time["sync_s"] + time["optimizer_s"]
        assert whole == pytest.approx(time["finish_s"])
        assert time["finish_s"] <= prediction["step_time_s"]


@given(legal_layouts(DENSE, CLUSTER))
def test_dense_terms_add_up(layout: Layout) -> None:
    adds_up(estimated(DENSE, layout).document())


@given(legal_layouts(SPARSE, CLUSTER))
def test_sparse_terms_add_up(layout: Layout) -> None:
    adds_up(estimated(SPARSE, layout).document())


@given(legal_layouts(DENSE, CLUSTER))
def test_throughput_follows_from_the_step_time(layout: Layout) -> None:
    document: Any = estimated(DENSE, layout).document()
    prediction = document["prediction"]
    tokens = layout.samples * 4096
    chips = sum(p.count * s.option.num_chips for p in layout.pipelines for s in p.stages)

    assert prediction["tokens_per_s"] == pytest.approx(tokens / prediction["step_time_s"])
    assert prediction["tokens_per_s_per_chip"] == pytest.approx(prediction["tokens_per_s"] / chips)
    assert 0 < prediction["mfu"] < 1


def test_document_is_plain_json_with_stages_twice() -> None:
    document: Any = estimated(DENSE, "tp=2,pp=4,dp=2").document()

    assert json.loads(json.dumps(document)) == document
    nested = [stage for pipeline in document["pipelines"] for stage in pipeline["stages"]]
    assert [s["memory"] for s in document["stages"]] == [s["memory"] for s in nested]
    assert [(s["pipeline"], s["stage"]) for s in document["stages"]] == [(0, i) for i in range(4)]


def test_public_names_are_the_same_functions() -> None:
    assert costmodel.estimate is estimate
    assert costmodel.load_model is load_model
    with pytest.raises(AttributeError, match="guess"):
        getattr(costmodel, "guess")  # noqa: B009 - the name must be unknown to the checker too


def test_illegal_layout_is_refused_with_all_rules() -> None:
    layout = Layout(pipelines=(replace(legal().pipelines[0], microbatches=3),))
    bad = replace(layout, schedule=replace(layout.schedule, kind="none"))

    with pytest.raises(InputError, match="global batch size") as caught:
        estimated(DENSE, bad, global_batch_size=256)
    assert len(caught.value.violations) == 2


def legal() -> Layout:
    return estimated(DENSE, "tp=2,pp=2,dp=4").evaluation.layout


LLAMA = load_model("llama3-70b")


def test_layout_that_fits_needs_no_change() -> None:
    found = estimated(LLAMA, "tp=8,pp=4,dp=1,recompute=selective")

    assert found.fits
    assert found.missing_bytes == 0
    assert found.changes == ()


def test_single_changes_that_help_come_fastest_first() -> None:
    found = estimated(LLAMA, "tp=8,pp=4,mbs=4")

    assert not found.fits
    assert found.missing_bytes > 0
    assert found.changes
    assert all(change.fits for change in found.changes)
    times = [change.step_time_s for change in found.changes]
    assert times == sorted(times)
    for change in found.changes:
        assert estimated(LLAMA, change.layout).fits


def test_several_changes_together_when_one_is_not_enough() -> None:
    found = estimated(LLAMA, "tp=1,pp=4,dp=8,mbs=2,zero=0", sequence_length=8192)

    assert not found.fits
    assert found.changes[0].fits
    assert "recompute full" in found.changes[0].text
    assert "zero" in found.changes[0].text or "tp" in found.changes[0].text


def test_hopeless_layout_names_what_is_still_missing() -> None:
    found = estimated(load_model("llama3.1-405b"), "tp=8,pp=4,dp=1")
    (nearest,) = found.changes
    document: Any = found.document()

    assert not nearest.fits
    assert 0 < nearest.missing_bytes < found.missing_bytes
    assert document["changes"][0]["missing_bytes"] == nearest.missing_bytes


def test_stage_that_is_nearly_full_is_told() -> None:
    margins = [pool_document("a", 4, memory_margin=m / 100) for m in range(20, 100)]
    found = [estimate(*parts(problem(LLAMA, cluster(pool))), "tp=8,pp=4,mbs=1") for pool in margins]
    tight = [f for f in found if any("usable memory" in w for w in f.warnings)]

    assert tight
    shares = [
        max(s.memory.peak / s.memory.capacity for s in f.evaluation.stages[0])
        for f in tight
        if f.fits
    ]
    assert all(0.92 < share <= 1 for share in shares)


@pytest.mark.parametrize(
    ("share", "told"), [(0.91, False), (0.93, True), (1.0, True), (1.1, False)]
)
def test_little_to_spare_is_told(share: float, told: bool) -> None:
    """What does not fit at all is said elsewhere."""
    stage = SimpleNamespace(memory=SimpleNamespace(peak=share * 2**30, capacity=2.0**30))
    evaluation = cast("Evaluation", SimpleNamespace(stages=((stage,),)))
    found = memory_warnings(evaluation)

    assert bool(found) is told
