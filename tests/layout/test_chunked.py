"""Layouts whose chunks lie there and back, or twice in a pipeline: legal, and dealt from a line."""

import pytest

from costmodel.errors import InputError
from costmodel.layout import rules
from costmodel.layout.read import parsed_layout
from costmodel.layout.values import Layout, Schedule
from tests.layout.edits import CLUSTER, DENSE, change_stage, two_chunks
from tests.layout.problems import problem


def dealt(text: str) -> Layout:
    """The layout of a line, which breaks no rule."""
    where = problem(DENSE, CLUSTER, global_batch_size=16)
    parsed = parsed_layout(where, text)

    assert parsed.broken == rules.violations(where, parsed.layout) == ()
    return parsed.layout


def test_chunks_may_be_there_twice() -> None:
    layout = two_chunks("dualpipe", 8, embedding=True)

    assert rules.violations(problem(DENSE, CLUSTER, global_batch_size=layout.samples), layout) == ()


def test_chunks_may_lie_there_and_back() -> None:
    layout = change_stage(two_chunks("zbv", 3, head=False), 0, chunks=((0, 2), (6, 8)))
    layout = change_stage(layout, 1, chunks=((2, 5), (5, 6)))

    assert rules.violations(problem(DENSE, CLUSTER, global_batch_size=layout.samples), layout) == ()


@pytest.mark.parametrize("kind", ["zbv", "dualpipev"])
def test_a_line_deals_chunks_there_and_back(kind: str) -> None:
    layout = dealt(f"tp=2,pp=2,dp=1,schedule={kind},pools=a")
    stages = layout.pipelines[0].stages

    assert layout.schedule == Schedule(kind=kind, virtual_stages=2)
    assert [stage.chunks for stage in stages] == [((0, 2), (6, 8)), ((2, 4), (4, 6))]
    assert [(stage.embedding, stage.head) for stage in stages] == [(True, True), (False, False)]


def test_a_line_deals_the_chunks_of_dualpipe_twice() -> None:
    stages = dealt("tp=2,pp=4,dp=1,schedule=dualpipe,pools=a").pipelines[0].stages

    assert [stage.chunks for stage in stages] == [
        ((0, 2), (6, 8)),
        ((2, 4), (4, 6)),
        ((2, 4), (4, 6)),
        ((0, 2), (6, 8)),
    ]
    assert [stage.embedding for stage in stages] == [True, False, False, True]


def test_dualpipe_needs_even_stages() -> None:
    with pytest.raises(InputError, match="use 2 or 4 stages"):
        dealt("tp=2,pp=3,dp=1,schedule=dualpipe,pools=a")


def test_few_micro_batches_are_refused() -> None:
    where = problem(DENSE, CLUSTER, global_batch_size=4)
    parsed = parsed_layout(where, "tp=2,pp=4,dp=1,schedule=dualpipe,pools=a")

    assert [v.fix for v in rules.violations(where, parsed.layout)] == [
        "use 8 micro-batches, or the schedule 1f1b"
    ]
