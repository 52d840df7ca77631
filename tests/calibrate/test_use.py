"""Profiles that were written are read by the rest: sheets of a folder, constants of a stack."""

import json
from pathlib import Path
from typing import Any

import pytest

from costmodel.errors import InputError
from costmodel.hardware.read import chip_names, load_cluster, own_sheets
from costmodel.hardware.sheets.read import sheet_document
from costmodel.jobs.read import load_job
from costmodel.software.read import efficiency_of, read_constants, software_profile
from service.calibration import yaml_text
from service.cli.main import run
from service.profiles import sheet_documents, software_named, with_profiles

JOB = ["--global-batch-size", "256", "--sequence-length", "4096"]
LAYOUT = ["--layout", "tp=2,dp=128"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Slower products, links and software than bundled."""
    (tmp_path / "gemm.csv").write_text("m,n,k,dtype,tflops\n8192,8192,8192,bf16,400\n")
    rows = "".join(f"all_reduce,8,{2**i},{2**i * 2e-11}\n" for i in range(22, 31))
    (tmp_path / "links.csv").write_text(f"collective,ranks,bytes,time_s\n{rows}")
    files = [str(tmp_path / "gemm.csv"), str(tmp_path / "links.csv")]
    out = tmp_path / "profiles"
    chip = ["--chip", "nvidia-h100-sxm-80g"]
    assert run(["calibrate", *files, *chip, "--into", str(out), "--format", "json"]) == 0
    (out / "software").mkdir()
    (out / "software/ours.yaml").write_text("efficiency: {gemm: {value: 0.5}, attention: 0.3}\n")
    return out


def step_s(capsys: pytest.CaptureFixture[str], *arguments: object) -> float:
    capsys.readouterr()
    command = ["estimate", "llama3-8b", "dgx-h100-256", *JOB, *map(str, arguments)]
    assert run([*command, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)["prediction"]["step_time_s"]


def test_estimates_follow_the_profiles(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundled = step_s(capsys, *LAYOUT)
    measured = step_s(capsys, *LAYOUT, "--profiles", folder)
    software = step_s(capsys, *LAYOUT, "--software", folder / "software/ours.yaml")

    assert measured > 1.3 * bundled
    assert software > 1.2 * bundled
    assert step_s(capsys, *LAYOUT, "--software", "torchtitan") != bundled


def test_a_plan_carries_the_profiles(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = ["--profiles", str(folder), "--software", str(folder / "software/ours.yaml")]
    path = tmp_path / "plan.json"
    question = ["llama3-8b", "dgx-h100-256", *JOB, "--target", "runner", "--time-limit", "2"]
    assert run(["plan", *question, *own, "-o", str(path), "--format", "json"]) == 0
    plan = json.loads(path.read_text())
    (folder / "software/ours.yaml").unlink()

    assert plan["job"]["software"] == {"gemm": 0.5, "attention": 0.3}
    assert set(plan["cluster"]["document"]["sheets"]["links"]) == {"nvlink4"}
    assert run(["explain", str(path), "--format", "json"]) == 0
    constants = tmp_path / "same.json"
    constants.write_text(json.dumps({"efficiency": plan["job"]["software"]}))
    again = step_s(capsys, "--layout", path, "--profiles", folder, "--software", constants)
    assert again == pytest.approx(plan["prediction"]["step_time_s"], rel=1e-12)


def test_sheets_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["chips", "nvidia-h100-sxm-80g"], ["clusters", "dgx-h100-256"]):
        assert run([*command, "--profiles", str(folder)]) == 0
        assert "haplan calibrate: gemm.csv" in capsys.readouterr().out


def test_the_list_of_chips_has_those_of_the_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sheet = folder / "chips/nvidia-h100-sxm-80g.yaml"
    (folder / "chips/ours.yaml").write_bytes(sheet.read_bytes())
    capsys.readouterr()
    assert run(["chips", "--profiles", str(folder), "--format", "json"]) == 0
    chips = {chip["name"]: chip for chip in json.loads(capsys.readouterr().out)["items"]}

    for name in ("ours", "nvidia-h100-sxm-80g"):
        assert chips[name]["matmul_fraction"]["bf16"] == pytest.approx(400 / 989, rel=1e-3)
    assert len(chips) == len(chip_names()) + 1


def test_a_chip_that_is_not_bundled_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "chips").mkdir()
    (tmp_path / "links").mkdir()
    chip, link = sheet_document("chips", "nvidia-h20-96g"), sheet_document("links", "nvlink4")
    link["bandwidth"] = {"value": "123 GB/s"}
    (tmp_path / "chips/ours.yaml").write_text(yaml_text(chip))
    (tmp_path / "links/our-link.yaml").write_text(yaml_text(link))
    document: dict[str, Any] = dict(load_cluster("dgx-h100-256").document)
    document["pools"] = [{**document["pools"][0], "chip": "ours", "scale_up": "our-link"}]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="must name a known chip"):
        load_cluster(path)
    cluster = load_cluster(with_profiles(str(path), sheet_documents(tmp_path)))

    assert cluster.pools[0].scale_up.bytes_per_s == 123e9
    assert set(own_sheets(cluster.document).chips) == {"ours"}
    assert load_cluster(cluster.document) == cluster


def test_faulty_sheets_name_their_numbers() -> None:
    chip = sheet_document("chips", "nvidia-h20-96g")
    chip["memory"], chip["memory_fraction"] = {"value": "96 apples"}, {"value": "much"}
    chip["peak"]["bf16"] = {"value": 148.0}
    link = sheet_document("links", "nvlink4")
    del link["efficiency"]["p2p"]
    del link["title"]
    link2 = sheet_document("links", "nvlink4")
    link2["efficiency"] = {}
    sheets: dict[str, Any] = {"chips": {"a": chip}, "links": {"b": link, "c": link2}}
    document = {**load_cluster("hybrid-64").document, "sheets": sheets}
    with pytest.raises(InputError) as caught:
        load_cluster(document)
    fields = {violation.field for violation in caught.value.violations}

    assert fields >= {
        "/sheets/chips/a/memory",
        "/sheets/chips/a/memory_fraction",
        "/sheets/chips/a/peak/bf16",
        "/sheets/links/b/title",
        "/sheets/links/c/efficiency",
    }


@pytest.mark.parametrize("value", [0.0, -1.0, 1.5, 1e300, "inf", "nan"])
def test_shares_that_no_chip_or_link_can_have_are_refused(value: float | str) -> None:
    chip, link = sheet_document("chips", "nvidia-h20-96g"), sheet_document("links", "nvlink4")
    chip["memory_fraction"] = chip["matmul_fraction"]["bf16"] = {"value": value}
    chip["attention_fraction"] = {"vendor": {"value": value}}
    link["efficiency"]["p2p"] = {"value": 4.5 if value == 1.5 else value}
    sheets: dict[str, Any] = {"chips": {"a": chip}, "links": {"b": link}}
    with pytest.raises(InputError, match="must be above 0 and at most") as caught:
        load_cluster({**load_cluster("hybrid-64").document, "sheets": sheets})

    assert len(caught.value.violations) == 4


def test_rates_and_sizes_of_nothing_are_refused() -> None:
    chip, link = sheet_document("chips", "nvidia-h20-96g"), sheet_document("links", "nvlink4")
    chip["memory"], chip["memory_bandwidth"] = {"value": "0 GB"}, {"value": "0 GB/s"}
    chip["peak"]["bf16"] = {"value": "0 TFLOP/s"}
    link["bandwidth"], link["latency"] = {"value": "0 GB/s"}, {"value": "0 us"}
    sheets: dict[str, Any] = {"chips": {"a": chip}, "links": {"b": link}}
    with pytest.raises(InputError, match="must be above 0") as caught:
        load_cluster({**load_cluster("hybrid-64").document, "sheets": sheets})

    assert len(caught.value.violations) == 4  # no wait at all is a latency


@pytest.mark.parametrize("sheets", [3, [], {"chips": 3}, {"chips": {"a": 3}}, {"other": {}}])
def test_sheets_without_shape_are_refused(sheets: object) -> None:
    with pytest.raises(InputError, match="/sheets"):
        load_cluster({**load_cluster("hybrid-64").document, "sheets": sheets})


def test_all_faults_of_own_profiles_come_with_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chips").mkdir()
    (tmp_path / "chips/nvidia-h100-sxm-80g.yaml").write_text("title: [")
    own = ["--profiles", str(tmp_path), "--software", "nomad", "--precision", "bf17"]
    assert run(["estimate", "llama3-8b", "dgx-h100-256", *JOB, *LAYOUT, *own]) == 2
    text = capsys.readouterr().err

    assert "--precision: must be" in text
    assert "--software: must name a known software profile" in text
    assert "nvidia-h100-sxm-80g.yaml" in text
    own = ["--profiles", str(tmp_path), "--software", "nomad"]
    assert run(["estimate", "llama3", "dgx-h100", *JOB, *LAYOUT, *own]) == 2
    text = capsys.readouterr().err
    for told in ("MODEL: must be", "CLUSTER: must name", "--software", "h100-sxm-80g.yaml"):
        assert told in text
    assert run(["chips", "h100", "--profiles", str(tmp_path / "none")]) == 2
    assert "must hold chips/*.yaml" in capsys.readouterr().err


def test_constants_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("efficiency: {gem: 1, gemm: {value: 0}, fused_gradients: 1, host_op_s: -1}\n")
    with pytest.raises(InputError) as caught:
        read_constants(path)
    text = str(caught.value)

    assert len(caught.value.violations) == 4
    for told in ("did you mean gemm", "above 0", "true or false", "at least 0"):
        assert told in text
    path.write_text("title: x\n")
    with pytest.raises(InputError, match="must hold the constants"):
        read_constants(path)


def test_constants_that_nothing_reaches_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("efficiency: {gemm: 1000000000.0, attention: 4.1, step_overhead_s: 1.0e+300}\n")
    with pytest.raises(InputError) as caught:
        read_constants(path)

    assert len(caught.value.violations) == 3
    assert "at most 2" in str(caught.value)


def test_sections_that_no_profile_has_are_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("efficiency: {gemm: 0.8}\nkernels: {hopper: {gemm: {value: 0.5}}}\n")
    with pytest.raises(InputError, match="kernels"):
        read_constants(path)


def test_a_job_names_its_software() -> None:
    job = {"global_batch_size": 8, "sequence_length": 4096}

    assert load_job(job).software is None
    assert load_job({**job, "software": "bloom"}).software == "bloom"
    assert load_job({**job, "software": {"gemm": 0.5}}).software == {"gemm": 0.5}
    with pytest.raises(InputError, match="/software: must name"):
        load_job({**job, "software": "blooom"})
    with pytest.raises(InputError, match="/software/gemm: must be a number above 0"):
        load_job({**job, "software": {"gemm": "fast"}})


def test_software_by_name_is_that_profile() -> None:
    assert efficiency_of("bloom") == software_profile("bloom").efficiency
    assert efficiency_of({"gemm": 0.5}).gemm == 0.5
    assert software_named("auto") == "auto"
    with pytest.raises(InputError, match="did you mean bloom"):
        software_named("blooom")
