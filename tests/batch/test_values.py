"""What no row can have is refused, everything at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from costmodel.batch.rows import UniformGrid, UniformRows, rows_of
from costmodel.batch.score import score_rows
from costmodel.batch.values import MOST, MOST_FAULTS, SCHEDULES
from costmodel.errors import InputError, Violation
from costmodel.hardware.read import load_cluster
from costmodel.job import RECOMPUTE_MODES, Job
from costmodel.layout.uniform import Uniform
from costmodel.model.read import load_model
from costmodel.problem import Problem

GRID: Callable[..., UniformGrid] = UniformGrid
UNIFORM: Callable[..., Uniform] = Uniform
"""Without types: what is refused here is not of the right one."""

WRONG: tuple[tuple[str, object, str], ...] = (
    ("tp", 0, "write 1 or more"),
    ("tp", 1.5, "write 1 or more"),
    ("tp", True, "write 1 or more"),
    ("dp", 10**30, "write 1 or more"),
    ("mbs", "2", "write 1 or more"),
    ("pp", [2], "write 1 or more"),
    ("zero", 7, "use 0, 1, 2, 3"),
    ("zero", -1, "use 0, 1, 2, 3"),
    ("recompute", "ful", "use none, selective, full"),
    ("sp", 2, "write True or False"),
    ("sp", "yes", "write True or False"),
    ("schedule", "zbv", "use 1f1b, gpipe, interleaved"),
)


def faults(what: Callable[[], object]) -> tuple[Violation, ...]:
    with pytest.raises(InputError) as caught:
        what()
    return caught.value.violations


def problem(**job: Any) -> Problem:
    return Problem(
        model=load_model("gpt2"),
        cluster=load_cluster("hybrid-64"),
        job=Job(global_batch_size=64, sequence_length=1024, **job),
    )


def one_row(**columns: Any) -> UniformRows:
    return replace(rows_of([Uniform()]), **columns)


@pytest.mark.parametrize(("name", "value", "fix"), WRONG)
def test_a_wrong_value_is_named_with_what_to_write(name: str, value: object, fix: str) -> None:
    (axis,) = faults(lambda: GRID(**{name: (value,)}))
    (written,) = faults(lambda: rows_of([Uniform(), UNIFORM(**{name: value})]))

    assert (axis.field, axis.value, axis.fix) == (f"/{name}/0", value, fix)
    assert (written.field, written.value, written.fix) == (f"/1/{name}", value, fix)


def test_all_of_a_grid_is_named_at_once() -> None:
    found = faults(lambda: GRID(tp=(1, 0, 2.0), zero=(7,), recompute=("ful",), schedule=("zbv",)))

    assert [v.field for v in found] == ["/tp/1", "/tp/2", "/zero/0", "/recompute/0", "/schedule/0"]


def test_all_of_the_rows_are_named_at_once() -> None:
    found = faults(lambda: rows_of([UNIFORM(tp=0), UNIFORM(zero=7, schedule="zbv")]))

    assert [v.field for v in found] == ["/0/tp", "/1/zero", "/1/schedule"]


@pytest.mark.parametrize("axis", [4, "1f1b", None])
def test_a_column_is_a_sequence(axis: object) -> None:
    (found,) = faults(lambda: GRID(schedule=axis))

    assert found.fix == f"write ({axis!r},)"


def test_a_column_holds_a_value() -> None:
    found = faults(lambda: UniformGrid(sp=(), dp=()))

    assert [v.rule for v in found] == ["must hold a value"] * 2


def test_values_of_numpy_and_ranges_are_whole_numbers_too() -> None:
    grid = GRID(tp=np.array([1, 2]), dp=range(1, 4), sp=np.array([True]), mbs=(np.int32(2),))

    assert len(grid.rows()) == 6


@pytest.mark.parametrize("name", ["first", "last", "layers", "layout"])
def test_rows_have_no_split_of_layers(name: str) -> None:
    (found,) = faults(lambda: rows_of([UNIFORM(**{name: "3/3"})]))

    assert found.field == f"/0/{name}"
    assert "estimate" in found.fix


def test_many_faults_of_a_column_are_cut() -> None:
    assert len(faults(lambda: GRID(tp=[0] * 1000))) == MOST_FAULTS


def test_numbers_of_hand_made_rows_are_checked() -> None:
    broken = {"tp": 0, "zero": 7, "recompute": len(RECOMPUTE_MODES), "schedule": -1}
    rows = one_row(**{name: np.array([value]) for name, value in broken.items()})
    found = faults(lambda: score_rows(problem(), "ib", rows))

    assert {v.field: v.value for v in found} == {f"/0/{k}": v for k, v in broken.items()}
    assert found[-1].fix == "use 0 for 1f1b, 1 for gpipe, 2 for interleaved"


@pytest.mark.parametrize("column", [np.array([1.5]), np.array([1, 2]), np.array([[1]])])
def test_columns_are_whole_numbers_and_equally_long(column: np.ndarray[Any, Any]) -> None:
    (found,) = faults(lambda: score_rows(problem(), "ib", one_row(pp=column)))

    assert found.field == "/pp"


@pytest.mark.parametrize("schedule", ["zbv", "dualpipe", "zero-bubble", "1F1B"])
def test_a_job_with_a_schedule_that_rows_lack_is_refused(schedule: str) -> None:
    (found,) = faults(lambda: score_rows(problem(schedule=schedule), "ib", one_row()))

    assert (found.field, found.value) == ("/job/schedule", schedule)
    assert all(name in found.fix for name in SCHEDULES)


@pytest.mark.parametrize("schedule", [*SCHEDULES, None])
def test_other_jobs_are_scored(schedule: str | None) -> None:
    assert score_rows(problem(schedule=schedule), "ib", one_row()).legal.all()


@pytest.mark.parametrize("count", [-1, 1.5, True, "3"])
def test_a_count_is_a_whole_number(count: Any) -> None:
    scores = score_rows(problem(), "ib", one_row())

    assert faults(lambda: scores.best(count))[0].field == "count"
    assert scores.best(0).size == 0


def test_the_largest_degrees_are_illegal_and_not_wrapped() -> None:
    degrees = ("tp", "pp", "vp", "cp", "ep", "etp", "dp")
    rows = GRID(**dict.fromkeys(degrees, (1, MOST, 2**18)), schedule=SCHEDULES).rows()
    scores = score_rows(problem(), "ib", rows)
    ones = [all(getattr(rows, name)[i] == 1 for name in degrees) for i in range(len(rows))]

    assert sum(ones) == 2
    assert scores.legal.tolist() == ones
