"""Pins, excluded nodes, objectives and fronts through both faces."""

import json
from typing import Any

import pytest

from costmodel.errors import InputError
from costmodel.hardware.read import load_cluster
from haplan_client.schema.requests import PlanRequest
from service.cli.main import run
from service.pins import EXAMPLES, NAMES, read_pins
from service.usecases import make_plan
from tests.project.sources import ROOT

PLAN = ["plan", "llama3-8b", "hybrid-64", "--global-batch-size=256", "--sequence-length=4096"]
BODY: dict[str, Any] = {
    "model": "llama3-8b",
    "cluster": "hybrid-64",
    "job": {"global_batch_size": 256, "sequence_length": 4096},
    "target": "megatron",
}


def document_of(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert run([*PLAN, "--target=megatron", "--format=json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_pins_and_excluded_nodes_hold(capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of(capsys, "--pin=tp=4", "--exclude=ib:3", "--pin=reserve=roce:1")

    pools = document["cluster"]["document"]["pools"]
    assert [pool["nodes"] for pool in pools] == [3, 3]
    assert pools[0]["node_names"] == ["ib:0", "ib:1", "ib:2"]
    assert {s["tp"] for p in document["pipelines"] for s in p["stages"]} == {4}


def test_all_baselines_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of(capsys, "--baselines", "--layout=tp=2,pp=4,dp=8")

    names = [baseline["name"] for baseline in document["baselines"]]
    assert names[-1] == "your layout"
    assert "holmes" in names


def test_all_faults_are_named_by_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = ["--pin=tq=4", "--pin=tp=x", "--exclude=nowhere", "--objective=chips"]

    assert run([*PLAN, *wrong]) == 2

    lines = capsys.readouterr().err
    for words in ("--pin: must be NAME=VALUE", "'tp=x'", "--exclude", "--objective: needs"):
        assert words in lines


def test_the_front_is_a_document_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of(capsys, "--pareto", "--time-limit=20")

    assert document["schema"] == "haplan.front/v1"
    times = [point["step_time_s"] for point in document["front"]]
    assert times == sorted(times)
    assert run([*PLAN, "--target=megatron", "--pareto", "--time-limit=20"]) == 0
    assert "Front" in capsys.readouterr().out


def test_fewest_chips_for_a_deadline_and_one_that_nothing_meets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    more = ["--objective=chips", "--tokens=1e9", "--time-limit=20"]
    document = document_of(capsys, *more, "--deadline=10")

    assert 1e9 / document["prediction"]["tokens_per_s"] <= 10 * 3600
    assert sum(document["cluster"]["chips"].values()) < 64
    assert any(w.startswith("objective chips") for w in document["warnings"])
    assert run([*PLAN, *more, "--target=megatron", "--deadline=0.001"]) == 3


def test_a_request_carries_the_same_wishes() -> None:
    request = PlanRequest.model_validate(BODY | {"pins": ["tp=2"], "exclude": ["roce:0"]})

    document = make_plan(request)

    assert {s["tp"] for p in document["pipelines"] for s in p["stages"]} == {2}
    assert document["cluster"]["document"]["pools"][1]["nodes"] == 3


def test_cost_needs_prices() -> None:
    with pytest.raises(InputError, match="price_per_chip_hour"):
        make_plan(PlanRequest.model_validate(BODY | {"objective": "cost"}))


@pytest.mark.parametrize("name", NAMES)
def test_every_pin_has_an_example_that_is_read(name: str) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

    assert read_pins([f"{name}={EXAMPLES[name]}"], load_cluster("hybrid-64"))
    assert f"`{name}`" in page


@pytest.mark.parametrize(
    "text",
    ["tp=", "tp=0", "zero=-1", "recompute=some", "pool-order=x", "equal-tp=1", "reserve=ib",
     "memory-margin=much", "stages=two"],
)  # fmt: skip
def test_pins_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="write as in"):
        read_pins([text], load_cluster("hybrid-64"))
