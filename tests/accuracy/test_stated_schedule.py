"""Cases that state a schedule run under it."""

import pytest

from costmodel.calibration.case import UnscorableError
from costmodel.calibration.layouts import job_of, layout_of
from costmodel.calibration.score import Scored, score
from costmodel.layout.values import Layout
from tests.accuracy.test_reading import case, reading


def layout(stated: str, **parallel: object) -> Layout:
    r = reading(case(parallel={"schedule": stated, **parallel}))
    return layout_of(r, job_of(r), 32)


@pytest.mark.parametrize(
    ("stated", "kind", "chunks"),
    [
        ("1F1B", "1f1b", 1),
        ("1F1B-interleaved", "1f1b", 1),
        ("ZB-H1", "zero-bubble", 1),
        ("zero bubble", "zero-bubble", 1),
        ("ZB-V", "zbv", 2),
        ("DualPipe", "dualpipe", 2),
        ("DualPipeV (cut in half)", "dualpipev", 2),
    ],
)
def test_the_stated_schedule_is_taken(stated: str, kind: str, chunks: int) -> None:
    found = layout(stated)

    assert found.schedule.kind == kind
    assert {len(stage.chunks) for stage in found.pipelines[0].stages} == {chunks}
    assert isinstance(score(case(parallel={"schedule": stated})), Scored)


def test_chunks_of_dualpipe_lie_twice() -> None:
    stages = layout("DualPipe").pipelines[0].stages

    assert [stage.chunks for stage in stages[:2]] == [((0, 8), (24, 32)), ((8, 16), (16, 24))]
    assert [stage.chunks for stage in stages[2:]] == [((8, 16), (16, 24)), ((0, 8), (24, 32))]


def test_too_few_micro_batches_are_no_dualpipe() -> None:
    with pytest.raises(UnscorableError, match="dualpipe: microbatches must be even"):
        layout("DualPipe", gbs=8)


def test_one_stage_has_no_schedule() -> None:
    assert layout("ZB-H1", pp=1, dp=8).schedule.kind == "1f1b"
