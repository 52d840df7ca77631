"""Plans that somebody edited: every fault by its place, and the right exit code."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from costmodel.errors import InputError
from planner import read_plan
from service.cli.main import run
from tests.service.fixtures import Document

JOB = ["--global-batch-size=64", "--sequence-length=4096"]
WRONG: tuple[Any, ...] = (None, 0, -1, 1.5, "x", [], {}, [[]], True, 10**12)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Document:
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    assert run(["plan", "llama3-8b", "hybrid-64", *JOB, "--time-limit=3", "-o", str(path)]) == 0
    return json.loads(path.read_text(encoding="utf-8"))


def written(plan: Document, folder: Path) -> str:
    path = folder / "edited.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    return str(path)


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Places of a plan to damage; the graph and the cluster have tests of their own."""
    items: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        items = list(cast("dict[str | int, object]", value).items())
    elif isinstance(value, list) and value:
        items = [(0, cast("list[object]", value)[0])]
    for name, item in items:
        yield (*path, name)
        if name not in ("graph", "document"):
            yield from places(item, (*path, name))


def parent_of(plan: Document, path: tuple[str | int, ...]) -> Any:
    parent: Any = plan
    for part in path[:-1]:
        parent = parent[part]
    return parent


def without(plan: Document, path: tuple[str | int, ...]) -> Document:
    damaged = copy.deepcopy(plan)
    del parent_of(damaged, path)[path[-1]]
    return damaged


def with_value(plan: Document, path: tuple[str | int, ...], value: object) -> Document:
    damaged = copy.deepcopy(plan)
    parent_of(damaged, path)[path[-1]] = value
    return damaged


def faults_of(document: Document) -> list[str]:
    try:
        read_plan(document)
    except InputError as error:
        return [violation.field for violation in error.violations]
    return []


def test_whatever_is_missing_is_an_input_error_or_nothing(plan: Document) -> None:
    for path in places(plan):
        faults_of(without(plan, path))


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_whatever_is_wrong_is_an_input_error_or_nothing(plan: Document, value: object) -> None:
    for path in places({k: v for k, v in plan.items() if k != "space"}):
        faults_of(with_value(plan, path, value))


def test_all_faults_are_named_by_their_places(plan: Document) -> None:
    damaged = copy.deepcopy(plan)
    damaged["status"] = "good"
    damaged["job"]["precision"] = "bf17"
    damaged["search"]["evaluated"] = "many"
    damaged["baselines"][0].pop("name")
    damaged["groups"][0]["stages"] = [[0]]
    damaged["cluster"] = 3
    del damaged["warnings"]

    assert set(faults_of(damaged)) == {
        "/status",
        "/job/precision",
        "/search/evaluated",
        "/baselines/0/name",
        "/groups/0/stages/0",
        "/cluster/document",
        "/warnings",
    }


def test_faults_of_the_layout_come_with_the_others(plan: Document) -> None:
    damaged = copy.deepcopy(plan)
    damaged["target"] = 1
    damaged["pipelines"][0]["stages"][0] |= {"tp": 0, "pool": "nowhere"}

    stage = "/pipelines/0/stages/0"
    assert faults_of(damaged) == ["/target", f"{stage}/tp", f"{stage}/pool"]


Edit = Callable[[Document], None]


def edit(value: object, *path: str | int) -> Edit:
    """A change of what is at a path."""

    def change(plan: Document) -> None:
        parent_of(plan, path)[path[-1]] = value

    return change


def edit_stage(key: str, value: object) -> Edit:
    return edit(value, "pipelines", 0, "stages", 0, key)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (edit_stage("tp", 0), "/pipelines/0/stages/0/tp"),
        (edit_stage("pool", "nowhere"), "/pipelines/0/stages/0/pool"),
        (edit_stage("zero", 7), "/pipelines/0/stages/0/zero"),
        (edit_stage("recompute", {"mode": "some"}), "/pipelines/0/stages/0/recompute"),
        (edit_stage("chunks", []), "/pipelines/0/stages/0/chunks"),
        (edit(10**12, "pipelines", 0, "microbatches"), "/pipelines/0/micro"),
        (edit("1f2b", "schedule", "kind"), "/schedule/kind"),
        (edit("all", "job", "global_batch_size"), "/job/global_batch_size"),
        (edit({}, "model"), "/model/graph"),
        (edit(None, "pipelines"), "/pipelines"),
    ],
)
def test_a_plan_that_cannot_be_read_is_bad_input_to_validate(
    change: Edit, field: str, plan: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = copy.deepcopy(plan)
    change(damaged)

    assert run(["validate", written(damaged, tmp_path)]) == 2
    assert f"edited.json {field}" in capsys.readouterr().err


def test_all_that_keeps_a_plan_from_being_read_is_said(
    plan: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = copy.deepcopy(plan)
    damaged["pipelines"][0]["stages"][0] |= {"tp": 0, "pool": "nowhere"}

    assert run(["validate", written(damaged, tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


def lose_a_layer(plan: Document) -> None:
    stage = plan["pipelines"][0]["stages"][-1]
    first, end = stage["chunks"][-1]
    stage["chunks"][-1] = [first, end - 1]


@pytest.mark.parametrize(
    "change",
    [
        lose_a_layer,
        edit(7, "pipelines", 0, "microbatches"),
        edit([], "pipelines"),
        edit_stage("tp", 3),
    ],
)
def test_a_plan_that_contradicts_itself_does_not_pass(
    change: Edit, plan: Document, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = copy.deepcopy(plan)
    change(damaged)

    assert run(["validate", written(damaged, tmp_path), "--format=json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["violations"]
    assert report["ok"] is False
