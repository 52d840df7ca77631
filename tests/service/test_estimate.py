"""Estimates over HTTP and on the command line."""

import json
from collections.abc import Generator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from service.api.app import create_app
from service.api.settings import Settings
from service.cli.main import run
from tests.service.fixtures import QUESTION, Document

ESTIMATE = [
    "estimate",
    "llama3-8b",
    "hybrid-64",
    "--global-batch-size=64",
    "--sequence-length=4096",
]


@pytest.fixture(scope="module")
def client() -> Generator[TestClient]:
    with TestClient(create_app(Settings(database="sqlite://", processes=0))) as found:
        yield found


def estimate(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Document:
    assert run([*ESTIMATE, *arguments, "--format=json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_both_faces_say_the_same(client: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    layout = "tp=4,pp=4,dp=4"
    answer = client.post("/v1/estimates", json=QUESTION | {"layout": layout})

    assert answer.status_code == 200
    assert answer.json() == estimate(["--layout", layout], capsys)


def test_terms_sum_to_totals(capsys: pytest.CaptureFixture[str]) -> None:
    document = estimate(["--layout", "tp=4,pp=4,dp=4"], capsys)
    prediction = document["prediction"]

    assert sum(prediction["breakdown"].values()) == pytest.approx(prediction["step_time_s"])
    assert len(document["stages"]) == 4
    for stage in document["stages"]:
        memory = stage["memory"]
        terms = ("weights", "gradients", "optimizer", "activations", "transient", "fixed")
        assert sum(memory[term] for term in terms) == pytest.approx(memory["peak"])


def test_text_shows_every_term(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*ESTIMATE, "--layout", "tp=4,pp=4,dp=4"]) == 0
    text = capsys.readouterr().out
    for part in ("fits", "weights", "optim", "trans", "0.3    roce", "bubble", "finish"):
        assert part in text


def test_all_broken_rules_come_at_once(
    client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = "tp=5,pp=3,dp=7"
    answer = client.post("/v1/estimates", json=QUESTION | {"layout": layout})
    pointers = [error["pointer"] for error in answer.json()["errors"]]

    assert answer.status_code == 422
    assert len(pointers) >= 2
    assert all(pointer.startswith("#/layout") for pointer in pointers)
    assert run([*ESTIMATE, "--layout", layout]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(pointers)
    assert all(line.startswith("haplan: --layout") for line in lines)


def test_a_layout_file_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "layout.yaml"
    path.write_text(
        "pipelines:\n"
        "  - {count: 4, microbatches: 16, stages: [\n"
        "      {pool: ib, chunks: [[0, 16]], tp: 8}, {pool: roce, chunks: [[16, 32]], tp: 8}]}\n",
        encoding="utf-8",
    )

    assert len(estimate(["--layout", str(path)], capsys)["stages"]) == 2


def test_what_does_not_fit_says_what_would(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["estimate", "llama3-70b", *ESTIMATE[2:], "--layout", "tp=8,pp=1,dp=4"]

    assert run([*arguments, "--format=json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["fits"] is False
    assert document["missing_bytes"] > 0
    assert run(arguments) == 0
    text = capsys.readouterr().out
    assert "does not fit" in text.splitlines()[0]
    assert "GiB missing on a chip" in text.splitlines()[0]
    assert document["changes"][0]["change"] in text


def test_a_long_inline_layout_is_read(client: TestClient) -> None:
    layout = "tp=8,pp=4,dp=2,layout=E" + "|".join(["t,t,t,t," * 2] * 4) + "L" + "," * 300
    answer = client.post("/v1/estimates", json=QUESTION | {"layout": layout})

    assert answer.status_code == 200


def test_over_http_a_layout_is_never_a_path(client: TestClient) -> None:
    answer = client.post("/v1/estimates", json=QUESTION | {"layout": "pyproject.toml"})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "#/layout"
