"""An execution that does something else than the plan says is found out."""

import pytest

from costmodel.layout.values import Layout
from runner.reduction import Reduced
from runner.task import Fault
from runner.validation import run
from tests.runner.tiny import LLAMA, job, model, option, pipeline

LAYOUT = Layout(
    pipelines=(
        pipeline((2, option(tp=2)), (1, option()), microbatches=3),
        pipeline((3, option()), microbatches=2),
    )
)


def reduced() -> Reduced:
    return Reduced(
        graph=model([LLAMA] * 3),
        layout=LAYOUT,
        job=job(LAYOUT),
        reductions=(),
        not_covered=(),
    )


def test_without_a_fault_nothing_differs() -> None:
    report = run(reduced())

    assert report["ok"]
    assert report["differences"] == []
    assert report["ranks"] == 4


@pytest.mark.parametrize("factor", [1.0 + 1e-6, 3 / 2])
def test_wrong_gradient_weight(factor: float) -> None:
    report = run(reduced(), fault=Fault(gradient_weight=factor))

    assert not report["ok"]
    assert report["loss_max_abs_diff"] < 1e-12
    assert report["grad_max_rel_diff"] > 1e-8
    assert any("gradient of" in text for text in report["differences"])


def test_skipped_layer() -> None:
    report = run(reduced(), fault=Fault(skipped_layer=1))

    assert not report["ok"]
    assert report["loss_max_abs_diff"] > 1e-6
    observed, predicted = report["traffic_bytes"]["observed"], report["traffic_bytes"]["predicted"]
    assert observed["tp"] < predicted["tp"]
    assert any(text.startswith("tp traffic of ranks 0, 1") for text in report["differences"])
