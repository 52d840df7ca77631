"""Every rule: legal layouts break none, and each has a layout that breaks it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import Violation
from costmodel.layout import rules
from costmodel.layout.rule_tools import Rule
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from tests.layout.edits import (
    CLUSTER,
    DENSE,
    SPARSE,
    base,
    change_option,
    change_stage,
    interleaved,
    scheduled,
    two_chunks,
)
from tests.layout.problems import (
    legal_layouts,
    problem,
)


def with_batch(graph: Any, layout: Layout, **job: Any) -> Problem:
    return problem(graph, CLUSTER, global_batch_size=layout.samples, **job)


@given(legal_layouts(DENSE, CLUSTER))
def test_legal_dense_layouts_break_no_rule(layout: Layout) -> None:
    assert rules.violations(with_batch(DENSE, layout), layout) == ()


@given(legal_layouts(SPARSE, CLUSTER))
def test_legal_sparse_layouts_break_no_rule(layout: Layout) -> None:
    assert rules.violations(with_batch(SPARSE, layout), layout) == ()


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A layout that breaks a rule, where, and what is offered instead."""

    rule: str
    layout: Callable[[], Layout]
    field: str
    fix: str
    graph: Any = DENSE
    job: dict[str, Any] | None = None


def two_pipelines(zero: int) -> Layout:
    pipeline = base().pipelines[0]
    other = change_option(base(), 0, zero=zero).pipelines[0]
    return Layout(pipelines=(replace(pipeline, count=1), replace(other, count=1)))


def counted(count: int) -> Layout:
    return Layout(pipelines=(replace(base().pipelines[0], count=count, microbatches=1),))


def counted_fives(count: int) -> Layout:
    pipeline = base(tp=5, replicas=1, sequence_parallel=False).pipelines[0]
    return Layout(pipelines=(replace(pipeline, count=count),))


STAGE = "/pipelines/0/stages"
BROKEN = (
    Broken(
        rule="not_empty",
        layout=lambda: Layout(pipelines=()),
        field="/pipelines",
        fix="describe at least one",
    ),
    Broken(
        rule="not_empty",
        layout=lambda: change_stage(base(), 1, chunks=()),
        field=f"{STAGE}/1/chunks",
        fix="write [[first, last + 1]]",
    ),
    Broken(
        rule="positive",
        layout=lambda: change_option(base(), 1, cp=0),
        field=f"{STAGE}/1/cp",
        fix="write 1",
    ),
    Broken(
        rule="layers_once_in_order",
        layout=lambda: change_stage(base(), 1, chunks=((5, 8),)),
        field=f"{STAGE}/1/chunks",
        fix="write [4, 8]",
    ),
    Broken(
        rule="layers_once_in_order",
        layout=lambda: change_stage(base(), 1, chunks=((4, 7),)),
        field=f"{STAGE}/1/chunks",
        fix="2 x 4",
    ),
    Broken(
        rule="no_empty_stage",
        layout=lambda: change_stage(
            change_stage(base(), 0, chunks=((0, 0),), embedding=False), 1, chunks=((0, 8),)
        ),
        field=f"{STAGE}/0/chunks",
        fix="use fewer stages",
    ),
    Broken(
        rule="embedding_first",
        layout=lambda: change_stage(base(), 0, embedding=False),
        field=f"{STAGE}/0/embedding",
        fix="write true",
    ),
    Broken(
        rule="head_last",
        layout=lambda: change_stage(base(), 0, head=True),
        field=f"{STAGE}/0/head",
        fix="write false",
    ),
    Broken(
        rule="mtp_complete",
        layout=lambda: change_stage(base(SPARSE), 1, mtp=0),
        graph=SPARSE,
        field=f"{STAGE}/1/mtp",
        fix="write mtp 1 on the last stage",
    ),
    Broken(
        rule="mtp_after_layers",
        layout=lambda: change_stage(change_stage(base(SPARSE), 1, mtp=0), 0, mtp=1),
        graph=SPARSE,
        field=f"{STAGE}/0/mtp",
        fix="write mtp 1 on the last stage",
    ),
    Broken(
        rule="mtp_together",
        layout=lambda: change_stage(base(SPARSE), 0, mtp=1),
        graph=SPARSE,
        field=f"{STAGE}/0/mtp",
        fix="write mtp 0 here and mtp 1 in /pipelines/0/stages/1",
    ),
    Broken(
        rule="known_schedule",
        layout=lambda: scheduled("1f1bb", 1),
        field="/schedule/kind",
        fix="did you mean 1f1b?",
    ),
    Broken(
        rule="known_schedule",
        layout=lambda: scheduled("gpipe", 2),
        field="/schedule/virtual_stages",
        fix="interleaved",
    ),
    Broken(
        rule="chunks_match_schedule",
        layout=lambda: scheduled("interleaved", 2),
        field=f"{STAGE}/0/chunks",
        fix="set virtual_stages to 1",
    ),
    Broken(
        rule="whole_groups",
        layout=lambda: interleaved(63),
        field="/pipelines/0/microbatches",
        fix="use microbatches 62 or 64",
    ),
    Broken(
        rule="schedule_takes",
        layout=lambda: two_chunks("dualpipe", 3, embedding=True),
        field="/pipelines/0/microbatches",
        fix="use 4 micro-batches, or the schedule 1f1b",
    ),
    Broken(
        rule="mtp_on_ends",
        layout=lambda: two_chunks("dualpipe", 8, embedding=True, mtp=1),
        field=f"{STAGE}/1/mtp",
        fix="write mtp 0",
    ),
    Broken(
        rule="tp_divides_model",
        layout=lambda: change_option(base(sequence_parallel=False), 1, tp=3),
        field=f"{STAGE}/1/tp",
        fix="use tp 2 or 4",
    ),
    Broken(
        rule="vocabulary_splits",
        layout=base,
        job={"vocab_divisor": 1},
        field=f"{STAGE}/0/tp",
        fix="use tp 1 or 3, or let the job's vocab_divisor pad it",
    ),
    Broken(
        rule="context_splits",
        layout=lambda: base(cp=2),
        job={"sequence_length": 4098},
        field=f"{STAGE}/0/cp",
        fix="use cp 1 or 3, or pad the sequence to 4100",
    ),
    Broken(
        rule="sequence_parallel_splits",
        layout=base,
        job={"sequence_length": 4095},
        field=f"{STAGE}/0/tp",
        fix="use tp 1 or 3, or pad the sequence to 4096",
    ),
    Broken(
        rule="experts_need_sequence_parallel",
        layout=lambda: base(SPARSE, sequence_parallel=False),
        graph=SPARSE,
        field=f"{STAGE}/0/sequence_parallel",
        fix="write true, or use tp 1",
    ),
    Broken(
        rule="ep_divides_experts",
        layout=lambda: base(SPARSE, ep=3, replicas=3),
        graph=SPARSE,
        field=f"{STAGE}/0/ep",
        fix="use ep 2 or 4",
    ),
    Broken(
        rule="ep_divides_experts",
        layout=lambda: base(SPARSE, ep=32, replicas=16),
        graph=SPARSE,
        field=f"{STAGE}/0/ep",
        fix="use ep 16 with etp 2",
    ),
    Broken(
        rule="ep_divides_experts",
        layout=lambda: base(ep=2),
        field=f"{STAGE}/0/ep",
        fix="write 1",
    ),
    Broken(
        rule="etp_divides_experts",
        layout=lambda: base(SPARSE, etp=3, replicas=3),
        graph=SPARSE,
        field=f"{STAGE}/0/etp",
        fix="use etp 2 or 4",
    ),
    Broken(
        rule="expert_grid_fits",
        layout=lambda: base(SPARSE, ep=8),
        graph=SPARSE,
        field=f"{STAGE}/0/ep",
        fix="use ep 4, or 4 replicas (8 chips a stage)",
    ),
    Broken(
        rule="known_recompute",
        layout=lambda: base(recompute="some"),
        field=f"{STAGE}/0/recompute",
        fix="use none, selective, full",
    ),
    Broken(
        rule="known_offload",
        layout=lambda: base(offload="weights"),
        field=f"{STAGE}/0/offload",
        fix="use none, optimizer, activations, both",
    ),
    Broken(rule="known_zero", layout=lambda: base(zero=4), field=f"{STAGE}/0/zero", fix="zero 3"),
    Broken(
        rule="constant_samples",
        layout=lambda: change_option(base(), 1, replicas=1),
        field=f"{STAGE}/1/micro_batch_size",
        fix="write 2",
    ),
    Broken(
        rule="constant_samples",
        layout=lambda: change_option(base(), 1, replicas=3),
        field=f"{STAGE}/1/micro_batch_size",
        fix="use replicas 2 and",
    ),
    Broken(
        rule="batch_adds_up",
        layout=base,
        job={"global_batch_size": 260},
        field="/pipelines",
        fix="write microbatches 65",
    ),
    Broken(
        rule="batch_adds_up",
        layout=base,
        job={"global_batch_size": 258},
        field="/pipelines",
        fix="use global batch size 256 or 260",
    ),
    Broken(
        rule="zero_agrees",
        layout=lambda: two_pipelines(2),
        field="/pipelines/1/stages/0/zero",
        fix="write 1",
    ),
    Broken(
        rule="known_pool",
        layout=lambda: base(pool="c"),
        field=f"{STAGE}/0/pool",
        fix="known are: a, b",
    ),
    Broken(
        rule="chips_available",
        layout=lambda: counted(5),
        field="/pipelines",
        fix="run at most 4 pipelines of 8 chips there",
    ),
    Broken(
        rule="groups_pack",
        layout=lambda: counted_fives(3),
        field="/pipelines",
        fix="use tp that divides 8",
    ),
)


def check(broken: Broken) -> tuple[Violation, ...]:
    layout = broken.layout()
    job = {"global_batch_size": max(1, layout.samples)} if layout.pipelines else {}
    return rules.violations(problem(broken.graph, CLUSTER, **(job | (broken.job or {}))), layout)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda b: b.rule)
def test_rule_names_field_and_fix(broken: Broken) -> None:
    found = [v for v in check(broken) if v.field == broken.field and broken.fix in v.fix]

    assert found, check(broken)


def test_every_rule_has_a_failing_example() -> None:
    every = (*rules.GUARDS, *rules.RULES, *rules.POOL_RULES)

    assert {b.rule for b in BROKEN} == {name_of(rule) for rule in every}


def name_of(rule: Rule) -> str:
    return getattr(rule, "__name__", "")


@cache
def many_faults() -> tuple[Violation, ...]:
    layout = change_option(base(tp=3, cp=3, recompute="some"), 1, pool="nowhere", zero=7)
    return rules.violations(problem(DENSE, CLUSTER, sequence_length=4097), layout)


def test_all_faults_come_at_once() -> None:
    fields = {violation.field.rsplit("/", 1)[-1] for violation in many_faults()}

    assert fields >= {"tp", "cp", "recompute", "pool", "zero", "pipelines"}


def test_each_violated_dimension_is_named() -> None:
    text = "\n".join(map(str, many_faults()))

    assert "16 attention heads" in text
    assert "8 kv heads" in text
    assert "feed-forward width 4096" in text


def test_equal_faults_of_stages_are_told_once() -> None:
    found = rules.violations(problem(DENSE, CLUSTER), base(recompute="some"))

    assert len(found) == 1
    assert "1 more stage)" in found[0].rule


@given(st.integers(2, 8), st.sampled_from([0, 1]))
def test_offered_tp_is_legal(tp: int, index: int) -> None:
    layout = change_option(base(sequence_parallel=False), index, tp=tp)
    for violation in rules.violations(problem(DENSE, CLUSTER), layout):
        if not violation.field.endswith("/tp"):
            continue
        for offered in re.findall(r"\d+", violation.fix):
            better = change_option(layout, index, tp=int(offered))
            fields = [v.field for v in rules.violations(problem(DENSE, CLUSTER), better)]
            assert violation.field not in fields
