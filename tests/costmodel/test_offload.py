"""What a stage keeps in its host's memory: off the chip, and paid for on the way."""

from dataclasses import replace

import pytest

from costmodel.batch.rows import rows_of
from costmodel.errors import InputError
from costmodel.evaluation import Evaluation
from costmodel.layout.rules import warnings
from costmodel.layout.uniform import Uniform
from costmodel.layout.values import Layout, StageOption
from costmodel.step import evaluate
from tests.costmodel.cases import even_layout, problem

CASE = problem()


def layout(offload: str) -> Layout:
    return even_layout(StageOption(pool="p", tp=2, offload=offload), 2, 16)


def evaluated(offload: str, copy_bytes_per_s: float = 25e9) -> Evaluation:
    efficiency = replace(CASE.efficiency, host_copy_bytes_per_s=copy_bytes_per_s)
    return evaluate(replace(CASE, efficiency=efficiency), layout(offload))


def test_what_is_on_the_host_is_not_on_the_chip() -> None:
    plain, both = evaluated("none").stages[0][0].memory, evaluated("both").stages[0][0].memory

    assert both.optimizer == 0.0 < plain.optimizer
    assert both.activations == 0.0 < plain.activations
    assert both.weights == plain.weights
    assert both.gradients == plain.gradients
    assert plain.transient < both.transient < plain.transient + plain.activations


def test_the_update_waits_for_the_host() -> None:
    plain, host = evaluated("none").stages[0][0].time, evaluated("optimizer").stages[0][0].time

    assert host.optimizer_s > plain.optimizer_s
    assert host.forward_s == plain.forward_s
    assert evaluated("optimizer", 5e9).step_time_s > evaluated("optimizer").step_time_s


def test_gradients_that_the_backward_hides_cost_the_update_and_the_way_up() -> None:
    found = evaluated("optimizer", 1e15).stages[0][0].time
    slow = evaluated("optimizer", 25e9).stages[0][0].time
    e, job = CASE.efficiency, CASE.job
    count = found.optimizer_s * e.host_update_bytes_per_s / e.optimizer_bytes_per_parameter
    down_s = max(0.0, job.gradient_bytes * count / 25e9 - e.sync_overlap * slow.backward_s)

    assert slow.optimizer_s == pytest.approx(
        found.optimizer_s + down_s + job.weight_bytes * count / 25e9, rel=1e-3
    )


def test_activations_travel_beside_the_passes() -> None:
    plain = evaluated("none")
    quick, slow = evaluated("activations", 1e15), evaluated("activations", 1e8)
    kept = plain.stages[0][0].memory.activations / plain.stages[0][0].in_flight

    assert quick.step_time_s == pytest.approx(plain.step_time_s, rel=1e-12)
    assert slow.stages[0][0].time.forward_s == pytest.approx(kept / 1e8, rel=1e-4)


def test_a_warning_names_what_is_assumed() -> None:
    [said] = [w for w in warnings(CASE, layout("both")) if "hosts' memory" in w]

    assert "pool p keeps optimizer and activations" in said
    assert "25 GB/s" in said


def test_many_layouts_at_once_refuse_it() -> None:
    with pytest.raises(InputError) as error:
        rows_of([Uniform(), Uniform(offload="optimizer")])
    assert error.value.violations[0].field == "/1/offload"
