"""Text at 80 columns: no line is longer, no number is cut, long plans stay short."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from service.cli.main import run
from service.cli.output import show_text
from service.cli.text.explain_text import narrowed
from service.cli.text.plan_text import show_plan
from tests.service.fixtures import Document, plan_document, stage

JOB = ["--global-batch-size=1024", "--sequence-length=4096"]
SHOWN = re.compile(r"\d[\d,.]*/\d[\d,.]*")


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def shown(plan: Document, capsys: pytest.CaptureFixture[str]) -> list[str]:
    show_text(show_plan(plan))
    return capsys.readouterr().out.splitlines()


def assert_readable(lines: list[str]) -> None:
    assert [line for line in lines if len(line) > 80 or line != line.rstrip()] == []
    assert "\u2026" not in "".join(lines)


@pytest.mark.parametrize(
    "arguments",
    [
        ["chips"],
        ["chips", "nvidia-h100-sxm-80g"],
        ["links"],
        ["links", "nvlink4"],
        ["clusters"],
        ["clusters", "h100-a800-h20-1024"],
        ["model", "deepseek-v3"],
        ["model", "mixtral-8x22b", "--graph"],
        ["estimate", "qwen3-235b-a22b", "mixed-10240", *JOB, "--layout=tp=4,pp=32,ep=8,dp=16"],
        ["estimate", "llama3-70b", "hybrid-64", *JOB, "--layout=tp=8,pp=4,vp=5,dp=2,zero=3"],
        ["estimate", "llama3-70b", "hybrid-64", *JOB, "--layout=tp=8,pp=2,dp=4"],
        ["plan", "llama3-70b", "hybrid-64", *JOB, "--time-limit=2"],
    ],
)  # fmt: skip
def test_commands_keep_to_the_width(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 0
    assert_readable(capsys.readouterr().out.splitlines())


def test_an_explanation_keeps_to_the_width(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.json"
    run(["plan", "llama3-70b", "hybrid-64", *JOB, "--time-limit=2", "-o", str(path)])
    capsys.readouterr()
    assert run(["explain", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert_readable(lines)
    drawn = [line for line in lines if line.count("|") == 2]
    stages = json.loads(path.read_text(encoding="utf-8"))["pipelines"][0]["stages"]
    assert len(drawn) == len(stages)
    assert len({len(line) for line in drawn}) == 1


def test_a_drawing_is_thinned_evenly() -> None:
    assert narrowed("FFffBBbb", 4) == "FfBb"
    assert narrowed("Fb", 9) == "Fb"


def long_stages(change: Callable[[int], Document]) -> list[Document]:
    return [
        stage("ascend-b", 2 * k, 2 * k + 2, embedding=k == 0, head=k == 23) | change(k)
        for k in range(24)
    ]


def test_a_long_pipeline_has_a_row_for_each_run(capsys: pytest.CaptureFixture[str]) -> None:
    stages = long_stages(lambda k: {"pool": "h100-a" if k < 12 else "ascend-b"})
    plan = plan_document(pipelines=[{"count": 640, "microbatches": 128, "stages": stages}])
    lines = shown(plan, capsys)

    assert_readable(lines)
    rows = [line.split()[:2] for line in lines if SHOWN.search(line)]
    assert [" ".join(row) for row in rows] == ["0 h100-a", "1-11 x11", "12-22 x11", "23 ascend-b"]
    assert "2 each (2-23)" in "".join(lines)


def test_numbers_are_never_cut(capsys: pytest.CaptureFixture[str]) -> None:
    def unlike(k: int) -> Document:
        return {
            "pool": f"a-pool-with-a-long-name-{k % 2}",
            "tp": 2 ** (k % 4),
            "ep": 8 * (1 + k % 2),
            "replicas": 4096 // 2 ** (k % 4),
            "zero": k % 4,
            "forward_s": 0.0123,
            "backward_s": 0.456,
            "chunks": [[100 + 2 * k + 60 * v, 102 + 2 * k + 60 * v] for v in range(8)],
        }

    stages = long_stages(unlike)
    plan = plan_document(pipelines=[{"count": 1, "microbatches": 128, "stages": stages}])
    lines = shown(plan, capsys)

    assert_readable(lines)
    text = "\n".join(lines)
    assert len(re.findall(r" 12\.3/456 ms ", text)) == 24
    assert len(re.findall(r" 9\.8/68\.0$", text, re.MULTILINE)) == 24
    assert len(re.findall(r"replicas=(4096|2048|1024|512)\b", text)) == 24


def test_many_kinds_of_pipelines_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    pipelines = [
        {
            "count": 1,
            "microbatches": 10 + k,
            "stages": [stage("ib", 0, 10 + k // 2), stage("roce", 10 + k // 2, 32)],
        }
        for k in range(20)
    ]
    plan = plan_document(pipelines=pipelines)
    lines = shown(plan, capsys)

    assert_readable(lines)
    assert len(lines) < 60
    assert any(line.split()[:4] == ["18-19", "1", "28,", "29"] for line in lines)
    assert any("--format json" in line for line in lines)


def test_pipelines_that_only_differ_in_number_share_a_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    [pipeline] = plan_document()["pipelines"]
    others = [copy.deepcopy(pipeline) | {"microbatches": 20 + k} for k in range(6)]
    text = "\n".join(shown(plan_document(pipelines=others), capsys))

    assert "Pipelines 0-5: 4 copies, 20 to 25 micro-batches each" in text
    assert text.count("17 (0-16) +E") == 1


def test_a_narrower_terminal_gets_whole_tables(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert run(["chips"]) == 0

    assert "\u2026" not in capsys.readouterr().out
