"""`haplan simulate` and the trace over HTTP."""

import gzip
import json
from collections.abc import Generator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from service import usecases
from service.api.app import create_app
from service.api.settings import Settings
from service.cli.main import run
from tests.service.fixtures import Document, returning

JOB = ["--global-batch-size=64", "--sequence-length=4096"]
SETTINGS = Settings(database="sqlite://", processes=0, max_waiting=0)
QUESTION = {
    "model": "llama3-8b",
    "cluster": "hybrid-64",
    "job": {"global_batch_size": 64, "sequence_length": 4096},
}


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    assert run(["plan", "llama3-8b", "hybrid-64", *JOB, "-o", str(path)]) == 0
    return path


def plan_of(path: Path) -> Document:
    return dict(json.loads(path.read_text()))


def test_a_table_of_the_stages(plan_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", str(plan_file)]) == 0

    text = capsys.readouterr().out
    for part in ("step time", "Pipeline", "micro-batches", "compute", "idle", "busy"):
        assert part in text


def test_the_document_and_the_trace_agree(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "made" / "trace.json"
    capsys.readouterr()

    assert run(["simulate", str(plan_file), "--trace", str(trace), "--format=json"]) == 0

    document = json.loads(capsys.readouterr().out)
    step_s = plan_of(plan_file)["prediction"]["step_time_s"]
    assert document["schema"] == "haplan.simulation/v1"
    assert document["plan"] == plan_of(plan_file)["id"]
    assert document["step_time_s"] == pytest.approx(step_s)
    assert document["trace"] == {"path": str(trace), "bytes": trace.stat().st_size}
    events = json.loads(trace.read_text())["traceEvents"]
    last = max(e["ts"] + e["dur"] for e in events if e["ph"] == "X")
    assert last / 1e6 == pytest.approx(step_s)


def test_a_trace_is_compressed_by_its_name(plan_file: Path, tmp_path: Path) -> None:
    plain, packed = tmp_path / "trace.json", tmp_path / "trace.json.gz"

    assert run(["simulate", str(plan_file), "--trace", str(plain), "--pipeline=0"]) == 0
    assert run(["simulate", str(plan_file), "--trace", str(packed), "--pipeline=0"]) == 0

    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pipeline=99"], "--pipeline: must be one of the plan's"),
        (["--trace=/proc/no/trace.json"], "--trace: must be a file that can be written"),
    ],
)
def test_what_cannot_be_done_is_said(
    plan_file: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", str(plan_file), *arguments]) == 2
    assert said in capsys.readouterr().err


NOTHING: Document = {
    "status": "infeasible",
    "schedule": None,
    "pipelines": [],
    "groups": [],
    "idle": {},
    "prediction": None,
    "bound": None,
}


def test_there_is_nothing_to_simulate_in_an_infeasible_plan(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan_of(plan_file) | NOTHING))

    assert run(["simulate", str(path)]) == 3
    assert "nothing to simulate" in capsys.readouterr().err


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, plan_file: Path) -> Generator[TestClient]:
    monkeypatch.setattr(usecases, "make_plan", returning(plan_of(plan_file)))
    with TestClient(create_app(SETTINGS), raise_server_exceptions=False) as found:
        yield found


def test_a_stored_plan_has_a_trace(client: TestClient, plan_file: Path, tmp_path: Path) -> None:
    where = client.post("/v1/plans", json=QUESTION).headers["Location"]
    written = tmp_path / "trace.json"
    assert run(["simulate", str(plan_file), "--trace", str(written)]) == 0

    answer = client.get(f"{where}/trace")

    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.content == written.read_bytes()


def test_a_trace_of_what_is_not_there(client: TestClient) -> None:
    where = client.post("/v1/plans", json=QUESTION).headers["Location"]
    missing = client.get(f"/v1/plans/sha256:{'b' * 64}/trace")
    beyond = client.get(f"{where}/trace", params={"pipeline": 99})

    assert missing.status_code == 404
    assert beyond.status_code == 422
    assert beyond.json()["errors"][0]["pointer"] == "#/pipeline"


def test_a_trace_does_not_replace_the_plan_or_the_document(
    plan_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, place = plan_file.read_bytes(), str(tmp_path / "x.json")
    for trace, more in ((str(plan_file), []), (place, ["-o", place])):
        assert run(["simulate", str(plan_file), "--trace", trace, *more]) == 2
        assert "--trace: must be another file" in capsys.readouterr().err

    assert plan_file.read_bytes() == before
    assert not Path(place).exists()
