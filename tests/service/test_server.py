"""One real server on the loopback address, with real planning processes."""

import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from haplan_client import Client, InvalidRequestError, NotFoundError
from tests.service.fixtures import QUESTION

ADDRESS = re.compile(r"running on (http://127\.0\.0\.1:\d+)")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    database = tmp_path_factory.mktemp("server") / "plans.sqlite3"
    command = [Path(sys.executable).with_name("haplan"), "serve", "--port", "0"]
    with subprocess.Popen(
        [*command, "--database", f"sqlite:///{database}"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        addresses = (ADDRESS.search(line) for line in process.stderr)
        yield next(found.group(1) for found in addresses if found)
        process.terminate()
        process.communicate(timeout=20)


def test_the_client_reads_the_catalogue(server: str) -> None:
    with Client(server) as client:
        assert "hybrid-64" in {cluster["name"] for cluster in client.clusters()}
        assert "nvidia-h100-sxm-80g" in {chip["name"] for chip in client.chips()}


def test_a_plan_is_made_in_a_process_and_kept(server: str) -> None:
    with Client(server) as client:
        plan = client.plan(**QUESTION, time_limit_s=60)
        again = client.plan(**QUESTION, time_limit_s=60)

        assert plan["status"] in ("optimal", "feasible")
        assert plan["id"] == again["id"]
        assert client.get_plan(plan["id"])["prediction"] == plan["prediction"]
        assert [summary["id"] for summary in client.list_plans()] == [plan["id"]]


def test_a_plan_estimates_to_itself(server: str) -> None:
    with Client(server) as client:
        plan = client.plan(**QUESTION, time_limit_s=60)
        layout = {key: plan[key] for key in ("schedule", "pipelines")}
        estimate = client.estimate(**QUESTION, layout=layout)

    assert estimate["prediction"] == plan["prediction"]


def test_faults_reach_the_caller_one_by_one(server: str) -> None:
    with Client(server) as client, pytest.raises(InvalidRequestError) as caught:
        client.plan("no-model", "no-cluster", {"global_batch_size": 8, "sequence_length": 128})

    assert [v.pointer for v in caught.value.violations] == ["#/model", "#/cluster"]


def test_an_unknown_plan_is_not_found(server: str) -> None:
    with Client(server) as client, pytest.raises(NotFoundError):
        client.get_plan("sha256:" + "0" * 64)
