"""Simulated pipelines and their traces: the same numbers as the prediction, and a sound format."""

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.layout.read import parsed_layout
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from costmodel.schedules.registry import schedules
from costmodel.step import evaluate
from planner.explanation import find_bottleneck
from planner.simulation import Simulation, simulate
from planner.timeline import timeline
from planner.trace.document import trace_text
from planner.trace.events import FIRST_STAGE, STEP, process_of
from planner.trace.stage import MEMORY
from planner.values import Effort, Plan
from tests.layout.edits import CLUSTER, DENSE, SPARSE
from tests.layout.problems import legal_layouts, problem

Event = dict[str, Any]
LINES = ["tp=2,pp=4,dp=1,pools=a", "pp=2,dp=4,ep=4,zero=2,pools=a", "pp=2,dp=4,ep=2,zero=3,pools=a"]


def plan_of(where: Problem, layout: Layout) -> Plan:
    return Plan(
        problem=where,
        target="any",
        status="feasible",
        reproducible=True,
        space={},
        versions={},
        layout=layout,
        evaluation=evaluate(where, layout),
        nodes=tuple(tuple(() for _ in p.stages) for p in layout.pipelines),
        groups=(),
        bound=None,
        baselines=(),
        alternatives=(),
        effort=Effort(elapsed_s=0.0, first_within_1pct_s=0.0, evaluated=0, pruned={}),
    )


def drawn(kind: str, line: str, *, batch: int = 64, recompute: str = "none") -> Simulation:
    where = problem(SPARSE if "ep" in line else DENSE, CLUSTER, global_batch_size=batch)
    v = 2 if kind == "interleaved" else 1
    text = f"{line},vp={v},schedule={kind},recompute={recompute}"
    return simulate(plan_of(where, parsed_layout(where, text).layout))


def traced(simulation: Simulation, most: int = 40_000) -> tuple[dict[str, Any], list[Event]]:
    document = json.loads(trace_text(simulation, most))
    return document, document["traceEvents"]


def of(events: list[Event], phase: str, **wanted: object) -> list[Event]:
    return [e for e in events if e["ph"] == phase and all(e.get(k) == v for k, v in wanted.items())]


def slices(events: list[Event], stage: int, kind: str) -> float:
    """Seconds in slices of a category on a stage."""
    return sum(e["dur"] for e in of(events, "X", pid=process_of(stage), cat=kind)) / 1e6


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("kind", schedules())
def test_a_trace_says_what_the_prediction_says(kind: str, line: str, recompute: str) -> None:
    simulation = drawn(kind, line, recompute=recompute)
    _, events = traced(simulation)
    step_s = simulation.evaluation.step_time_s

    assert max(e["ts"] + e["dur"] for e in of(events, "X")) / 1e6 == pytest.approx(step_s, rel=1e-8)
    for i, (stage, use) in enumerate(zip(simulation.stages, simulation.uses, strict=True)):
        assert slices(events, i, "pass") == pytest.approx(use.compute_s, rel=1e-6, abs=1e-6)
        assert slices(events, i, "tp") == pytest.approx(use.tp_s, rel=1e-6, abs=1e-6)
        assert slices(events, i, "weights") == pytest.approx(use.weights_s, rel=1e-6, abs=1e-6)
        assert slices(events, i, "dp") == pytest.approx(use.sync_s, rel=1e-6, abs=1e-6)
        assert slices(events, i, "optimizer") == pytest.approx(use.optimizer_s, rel=1e-6, abs=1e-6)
        assert slices(events, i, "ep") >= use.ep_s - 1e-6
        memory = [e["args"]["bytes"] for e in of(events, "C", pid=process_of(i), name=MEMORY)]
        assert max(memory) == pytest.approx(stage.memory.peak, abs=1.0)


@pytest.mark.parametrize("kind", schedules())
def test_the_format_is_the_documented_one(kind: str) -> None:
    document, events = traced(drawn(kind, LINES[1]))

    assert set(document) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert document["displayTimeUnit"] in ("ms", "ns")
    required = {
        "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"},
        "C": {"name", "ph", "ts", "pid", "tid", "args"},
        "M": {"name", "ph", "pid", "tid", "args"},
        "s": {"name", "cat", "ph", "id", "ts", "pid", "tid"},
        "f": {"name", "cat", "ph", "id", "bp", "ts", "pid", "tid"},
    }
    for event in events:
        assert set(event) == required[event["ph"]]
        assert event.get("ts", 0) >= 0
        assert event.get("dur", 0) >= 0
    named = {(e["pid"], e["tid"]) for e in of(events, "M", name="thread_name")}
    assert {(e["pid"], e["tid"]) for e in of(events, "X")} <= named
    assert {e["pid"] for e in events} >= {STEP, FIRST_STAGE}
    owner = {e["tid"]: e["pid"] for e in events}
    assert all(owner[e["tid"]] == e["pid"] > 0 for e in events)
    assert {e["pid"] for e in events} == {e["pid"] for e in of(events, "M", name="process_name")}


@pytest.mark.parametrize("kind", schedules())
def test_slices_of_a_thread_do_not_overlap(kind: str) -> None:
    _, events = traced(drawn(kind, LINES[1]))
    threads: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for e in of(events, "X"):
        start = round(e["ts"] * 1000)
        threads[e["pid"], e["tid"]].append((start, start + round(e["dur"] * 1000)))

    for spans in threads.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))


@pytest.mark.parametrize("kind", schedules())
def test_every_hand_over_has_an_arrow_between_two_passes(kind: str) -> None:
    simulation = drawn(kind, LINES[0])
    _, events = traced(simulation)
    spans: defaultdict[int, list[tuple[float, float]]] = defaultdict(list)
    for e in of(events, "X", cat="pass"):
        spans[e["pid"]].append((e["ts"], e["ts"] + e["dur"]))
    sent = {e["id"]: e for e in of(events, "s")}
    received = {e["id"]: e for e in of(events, "f")}

    assert len(sent) == len(of(events, "X", cat="pp")) > 0
    assert sent.keys() == received.keys()
    for number, start in sent.items():
        end = received[number]
        assert start["ts"] <= end["ts"]
        assert abs(start["pid"] - end["pid"]) == 1 or kind == "interleaved"
        for e in (start, end):
            assert any(a <= e["ts"] <= b for a, b in spans[e["pid"]])


def test_long_steps_leave_out_micro_batches_in_the_middle() -> None:
    simulation = drawn("1f1b", LINES[0], batch=400)
    whole, _ = traced(simulation)
    document, events = traced(simulation, most=200)

    assert whole["otherData"]["microbatches_left_out"] == []
    start, stop = document["otherData"]["microbatches_left_out"]
    assert stop - start > 350
    assert len(of(events, "X", cat="pass")) <= 200
    for i, use in enumerate(simulation.uses):
        (gone,) = of(events, "X", pid=process_of(i), cat="left out")
        seen = slices(events, i, "pass") + gone["args"]["computing_s"]
        assert seen == pytest.approx(use.compute_s, rel=1e-6)
        peak = max(e["args"]["bytes"] for e in of(events, "C", pid=process_of(i)))
        assert peak == pytest.approx(simulation.stages[i].memory.peak, abs=1.0)


@given(legal_layouts(DENSE, CLUSTER), st.data())
@settings(max_examples=30)
def test_any_pipeline_of_any_layout_can_be_simulated(layout: Layout, data: st.DataObject) -> None:
    where = problem(DENSE, CLUSTER, global_batch_size=layout.samples)
    d = data.draw(st.integers(0, len(layout.pipelines) - 1))
    simulation = simulate(plan_of(where, layout), d)
    _, events = traced(simulation, most=5_000)

    for i, (stage, use) in enumerate(zip(simulation.stages, simulation.uses, strict=True)):
        assert float(simulation.run.times.ends[i]) == pytest.approx(stage.time.end_s, rel=1e-9)
        parts = [getattr(use, name) for name in use.__slots__ if name != "finish_s"]
        assert sum(parts) == pytest.approx(use.finish_s)
        assert use.idle_s >= -1e-9 * use.finish_s
        (optimizer,) = of(events, "X", pid=process_of(i), cat="optimizer")
        assert (optimizer["ts"] + optimizer["dur"]) / 1e6 == pytest.approx(use.finish_s, abs=1e-8)


def test_passes_beside_each_other_hide_exchanges() -> None:
    simulation = drawn("dualpipe", LINES[1])
    _, events = traced(simulation)
    hidden = sum(e["dur"] for e in of(events, "X", cat="ep") if "hidden" in e["name"]) / 1e6

    assert hidden > 0.0
    assert sum(use.ep_s for use in simulation.uses) < sum(slices(events, i, "ep") for i in (0, 1))


def test_a_pipeline_that_is_not_there_is_named() -> None:
    plan = drawn("1f1b", LINES[0]).plan

    with pytest.raises(InputError, match="must be one of the plan's 1 pipelines"):
        simulate(plan, 7)


@pytest.mark.parametrize("kind", schedules())
def test_every_schedule_is_drawn_as_text(kind: str) -> None:
    plan = drawn(kind, LINES[0]).plan
    assert plan.layout is not None

    head, *rows = timeline(plan.problem, plan.layout, 0, width=240).splitlines()

    assert head.startswith("pipeline 0, 16 of 64 micro-batches")
    assert [len(row.partition("|")[2]) for row in rows] == [241] * 4
    assert all(
        ("W" in row.upper()) is (kind not in ("1f1b", "gpipe", "interleaved")) for row in rows
    )
    assert rows[0].partition("|")[2][0] in "Ff"


@pytest.mark.parametrize("kind", schedules())
def test_no_stage_is_busier_than_the_step(kind: str) -> None:
    simulation = drawn(kind, LINES[0])

    assert 0.0 < find_bottleneck(simulation.evaluation).utilisation <= 1.0
    assert all(stage["busy"] <= 1.0 for stage in simulation.document()["stages"])
