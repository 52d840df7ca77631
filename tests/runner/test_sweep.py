"""Micro-benchmarks: their clocks, what they measure, and the tables they leave."""

import json
import time
from pathlib import Path

import pytest
import torch

from costmodel.calibration.files import read_measurements
from runner.sweep import clock, kernels, ranks
from runner.sweep.clock import seconds_of
from runner.sweep.folder import TABLES, read_settings, within, write_settings, write_table
from runner.sweep.kernels import known, machine
from runner.sweep.launch import SweepError, sweep
from runner.sweep.shapes import (
    AUTO,
    COLLECTIVES,
    CPU,
    CUDA,
    Settings,
    attention_shapes,
    gemm_shapes,
    payload_bytes,
    precisions,
    stream_bytes,
)
from service.cli.main import run

QUICK = Settings(device=CPU, quick=True, ranks=2)


@pytest.fixture
def story(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A CUDA device that only says what happens to it; an event tells 2 ms."""
    told: list[str] = []

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None:
            told.append("record")

        def elapsed_time(self, _end: "Event") -> float:
            told.append("elapsed")
            return 2.0

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: told.append("synchronise"))
    return told


def test_a_processor_is_timed_by_its_clock() -> None:
    taken_s = seconds_of(lambda: time.sleep(0.01), CPU, budget_s=0.0)

    assert 0.009 < taken_s < 0.1


def test_cuda_is_timed_between_events_of_a_device_that_is_done(story: list[str]) -> None:
    taken_s = seconds_of(lambda: story.append("run"), CUDA, budget_s=0.0)
    one = ["synchronise", "record", "run", "record", "synchronise", "elapsed"]

    assert taken_s == pytest.approx(2e-3)
    assert story[: clock.WARM_UP] == ["run"] * clock.WARM_UP
    assert story[clock.WARM_UP :] == one * (1 + clock.LEAST_SAMPLES)


def test_short_runs_are_timed_many_at_once(
    story: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "SAMPLE_S", 2e-2)
    seconds_of(lambda: story.append("run"), CUDA, budget_s=0.0)

    assert "record,run,run,run,run,run,run,run,run,run,run,record" in ",".join(story)


@pytest.mark.parametrize("device", [CPU, CUDA])
@pytest.mark.parametrize("quick", [True, False])
def test_what_is_measured_fits_the_device(device: str, quick: bool) -> None:
    settings = Settings(device=device, quick=quick, ranks=2)
    sizes = payload_bytes(settings)

    assert all(min(shape) >= 1 for shape in gemm_shapes(settings))
    assert len({shape[0] for shape in gemm_shapes(settings)}) > 3
    assert {*sizes[:2]} == {max(sizes), min(sizes)}
    assert len(sizes) == len({*sizes})
    assert min(stream_bytes(settings)) >= 2**26
    assert attention_shapes(settings)
    assert {*precisions(settings)} <= {*kernels.TYPES}


def test_time_that_is_over_ends_a_table() -> None:
    seen: list[tuple[int, float]] = []
    for item, share_s in within([1, 2, 3], 0.02):
        seen.append((item, share_s))
        time.sleep(0.03)

    assert [item for item, _ in seen] == [1]
    assert seen[0][1] == pytest.approx(0.02 / 3, rel=0.2)


def test_kernels_leave_tables_that_are_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def small(_settings: Settings) -> list[tuple[int, int, int]]:
        return [(32, 16, 8), (8, 16, 32)]

    def short(_settings: Settings) -> list[tuple[int, int, int, int]]:
        return [(1, 2, 16, 8)]

    def few(_settings: Settings) -> list[int]:
        return [2**16]

    monkeypatch.setattr(kernels, "gemm_shapes", small)
    monkeypatch.setattr(kernels, "attention_shapes", short)
    monkeypatch.setattr(kernels, "stream_bytes", few)
    folder = tmp_path / "sweep"
    folder.mkdir()
    write_settings(folder, Settings(device=CPU, quick=True))
    assert kernels.main(folder) == 0
    measured = read_measurements([folder])

    assert [(p.m, p.n, p.k, p.precision) for p in measured.gemms] == [
        (32, 16, 8, "fp32"),
        (8, 16, 32, "fp32"),
    ]
    assert [p.moved_bytes for p in measured.streams] == [3 * 2**16]
    assert measured.attention[0].causal
    assert read_settings(folder).ranks >= 2
    assert json.loads((folder / "machine.json").read_text())["memory_bytes"] > 1e8
    assert "product 32 x 16 x 8 fp32" in capsys.readouterr().out


def test_a_missing_device_is_refused_by_the_process_that_looks() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one here")
    with pytest.raises(RuntimeError, match="no CUDA device"):
        known(Settings(device=CUDA, quick=True))
    assert known(Settings(device=AUTO, quick=True)).device == CPU
    assert machine(CPU)["vendor"] == "cpu"


def test_a_collective_takes_as_long_as_its_slowest_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def slowest(value: float, _settings: Settings) -> float:
        calls.append("agree")
        return max(value, 0.25)

    class Group:
        def barrier(self) -> None:
            calls.append("barrier")

    monkeypatch.setattr(ranks, "agreed", slowest)
    monkeypatch.setattr(ranks, "dist", Group())

    assert ranks.sample(lambda: calls.append("run"), 2, QUICK) == 0.25
    assert calls == ["barrier", "run", "run", "agree"]
    assert ranks.seconds_of(lambda: None, QUICK) == 0.25


def test_a_table_without_rows_is_none(tmp_path: Path) -> None:
    write_table(tmp_path / "x.csv", ("a",), [])

    assert not (tmp_path / "x.csv").exists()


def test_failures_of_a_benchmark_are_told(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a device here")
    with pytest.raises(SweepError, match="no CUDA device"):
        sweep(CUDA, quick=True, into=tmp_path, progress=lambda _line: None)
    assert not list(tmp_path.iterdir())


def test_an_unknown_device_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calibrate", "--sweep", "--device", "gpu"]) == 2
    assert "--device" in capsys.readouterr().err


@pytest.mark.slow
def test_a_sweep_becomes_profiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["calibrate", "--sweep", "--device", "cpu", "--quick", "--chip", "this-cpu"]
    assert run([*command, "--into", str(tmp_path), "--format", "json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    measured = read_measurements([tmp_path / "raw"])

    assert {file.name for file in (tmp_path / "raw").iterdir()} == {*TABLES}
    assert {p.collective.value for p in measured.collectives} <= {*COLLECTIVES}
    assert [(p["kind"], p["name"]) for p in document["profiles"]] == [
        ("chips", "this-cpu"),
        ("links", "this-cpu-link"),
    ]
    assert "measuring product" in captured.err
    assert run(["chips", "this-cpu", "--profiles", str(tmp_path)]) == 0
