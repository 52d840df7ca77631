"""`haplan calibrate` from files to profiles that are read back."""

import json
from pathlib import Path
from typing import Any

import pytest

from costmodel.safe_document import load_document
from service.cli.main import run
from tests.calibrate.texts import nccl_text

SAMPLES = Path(__file__).parent / "samples"
CASES = Path(__file__).parents[1] / "accuracy" / "cases"


def calibrated(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    assert run(["calibrate", *map(str, arguments), "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_files_become_profiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    for name in ("h100_8_all_reduce.txt", "polaris_8_alltoall.txt"):
        (tmp_path / "in" / name).write_bytes((SAMPLES / name).read_bytes())
    gemm = tmp_path / "in" / "gemm.csv"
    gemm.write_text("m,n,k,dtype,tflops\n4096,4096,4096,bf16,700\n8192,8192,8192,bf16,720\n")
    document = calibrated(
        capsys,
        tmp_path / "in",
        *("--chip", "nvidia-h100-sxm-80g", "--scale-out", "slingshot-200g", "--nics", 2),
        *("--software", "ours", "--into", tmp_path / "out"),
    )
    found = {(p["kind"], p["name"]): p for p in document["profiles"]}
    written = {p.relative_to(tmp_path / "out").as_posix() for p in tmp_path.glob("out/*/*")}

    assert [(f["kind"].split(",")[0], f["points"]) for f in document["files"]] == [
        ("GEMM sweep", 2),
        ("nccl-tests all_reduce", 32),
        ("nccl-tests all_to_all", 26),
    ]
    assert written == {f"{kind}/{name}.yaml" for kind, name in found}
    assert set(found) == {
        ("chips", "nvidia-h100-sxm-80g"),
        ("links", "nvlink4"),
        ("links", "slingshot-200g"),
        ("software", "ours"),
    }
    sheet = load_document(tmp_path / "out/chips/nvidia-h100-sxm-80g.yaml")
    assert sheet["matmul_fraction"]["bf16"]["value"] == pytest.approx(720 / 989, rel=1e-3)
    assert "haplan calibrate: gemm.csv" in sheet["matmul_fraction"]["bf16"]["source"]


def test_a_stack_is_fitted_to_its_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [CASES / "korthikanti_2022_table_5.jsonl", CASES / "megatron_sc21_table_1.jsonl"]
    document = calibrated(capsys, *files, "--software", "ours", "--into", tmp_path)
    profile = document["profiles"][0]
    errors = profile["errors"]

    assert errors["after"]["median"] < 0.5 * errors["before"]["median"]
    assert errors["held_out"]["n"] == 10
    assert errors["held_out"]["median"] < errors["before"]["median"]
    assert load_document(tmp_path / "software/ours.yaml")["runs"]["vocab"] == 51200


def test_one_case_moves_the_constants_little(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = tmp_path / "one.jsonl"
    rows = (CASES / "megatron_sc21_table_1.jsonl").read_text().splitlines()
    one.write_text(f"{rows[0]}\n")
    document = calibrated(capsys, one, "--software", "ours", "--into", tmp_path)
    profile = document["profiles"][0]

    assert all(abs(n["value"] / n["before"] - 1.0) < 0.3 for n in profile["numbers"])
    assert profile["errors"]["held_out"] is None
    assert profile["errors"]["after"]["median"] < profile["errors"]["before"]["median"]


def test_text_says_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [SAMPLES / "h100_8_all_reduce.txt", CASES / "megatron_sc21_table_1.jsonl"]
    arguments = [*map(str, files), "--scale-up", "nvlink4", "--software", "ours"]
    assert run(["calibrate", *arguments, "--into", str(tmp_path)]) == 0
    text = capsys.readouterr().out

    for word in ("bus bandwidths", "Not measured, as bundled", "before", "after", "latency"):
        assert word in text


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("h100_8_all_reduce.txt", ["--scale-up", "name the link inside the node"]),
        ("polaris_8_alltoall.txt", ["--scale-out", "--nics"]),
        ("a100_pcie_gemm.csv", ["--chip"]),
    ],
)
def test_what_was_measured_must_be_named(
    name: str, told: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["calibrate", str(SAMPLES / name), "--into", str(tmp_path)]) == 2
    text = capsys.readouterr().err

    assert all(word in text for word in told)
    assert not list(tmp_path.iterdir())


def test_names_are_checked_and_unused_ones_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.txt"
    path.write_text(nccl_text({2**20: 1e-4}))
    names = ["--chip", "h100", "--scale-up", "infiniband-ndr", "--scale-out", "nvlink4"]
    assert run(["calibrate", str(path), *names, "--software", "x", "--into", str(tmp_path)]) == 2
    text = capsys.readouterr().err

    assert "did you mean nvidia-h100" in text
    assert "must be a link for scale-up" in text
    assert "must be a link for scale-out" in text
    assert text.count("was not measured") == 2


def test_cases_that_cannot_be_predicted_are_refused_with_reasons(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": "a", "model": {}, "measured": {"step_time_s": 1}}\n')
    assert run(["calibrate", str(path), "--software", "x"]) == 2
    assert "a: " in capsys.readouterr().err


def test_profiles_stay_in_their_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gemm = ["calibrate", str(SAMPLES / "a100_pcie_gemm.csv"), "--chip", "nvidia-a100-pcie-80g"]
    assert run([*gemm, "--software", "../x", "--into", str(tmp_path / "out")]) == 2
    assert "--software: must be the stem of a file" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    for command in (gemm, ["calibrate", "--sweep", "--quick"]):
        assert run([*command, "--into", str(tmp_path / "file")]) == 2
        assert "--into: must be a folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_nothing_to_read_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["calibrate"]) == 2
    assert "--sweep" in capsys.readouterr().err


def gemm_csv(tmp_path: Path, time_us: float) -> Path:
    path = tmp_path / "gemm.csv"
    path.write_text(f"m,n,k,dtype,time_us\n4096,4096,4096,bf16,{time_us}\n")
    return path


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--nics", "2"], "--nics: was not measured"),
        (["--scale-up-domain", "72"], "--scale-up-domain: was not measured"),
        (["--quick"], "--quick: is of a sweep alone"),
        (["--device", "cuda"], "--device: is of a sweep alone"),
        (["--software", "auto"], "--software: must not be the name of a bundled stack"),
        (["--software", "torchtitan"], "--software: must not be the name of a bundled stack"),
        (["--into", "/proc/none"], "--into: must be a file that can be written"),
    ],
)
def test_options_without_use_are_refused(
    tmp_path: Path, options: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chip = ["--chip", "nvidia-a100-pcie-80g", "--into", str(tmp_path / "out")]
    assert run(["calibrate", str(gemm_csv(tmp_path, 600.0)), *chip, *options]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_rate_far_below_the_peak_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong unit of time: milliseconds where seconds were meant."""
    chip = ["--chip", "nvidia-a100-pcie-80g", "--into", str(tmp_path / "out")]
    assert run(["calibrate", str(gemm_csv(tmp_path, 600e3)), *chip]) == 2
    assert "must reach 1% of what nvidia-a100-pcie-80g can do" in capsys.readouterr().err


def test_attention_that_would_give_no_profile_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "attention.csv"
    path.write_text("sequence,heads,head_dim,dtype,time_us\n4096,32,128,bf16,1000\n")
    chip = ["--chip", "nvidia-a100-pcie-80g", "--into", str(tmp_path / "out")]
    assert run(["calibrate", str(path), *chip]) == 2
    assert "--software: is needed for" in capsys.readouterr().err


def test_names_are_checked_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_args: object, **_named: object) -> None:
        raise AssertionError("measured")

    monkeypatch.setattr("runner.sweep.launch.sweep", never)
    names = ["--chip", "../x", "--scale-up", "nowhere", "--software", "auto"]
    assert run(["calibrate", "--sweep", *names, "--into", str(tmp_path)]) == 2
    text = capsys.readouterr().err

    for told in ("--chip: must be the stem", "--scale-up: must name", "--software: must not be"):
        assert told in text
