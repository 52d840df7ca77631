"""One chip or one cluster, with the source of every number."""

import json
from pathlib import Path
from typing import Any

import pytest

from costmodel.hardware.read import chip_names, cluster_names, load_cluster
from costmodel.hardware.sheets.read import link_names
from service.cli.main import run
from service.sheets import chip_document, cluster_sheets


def test_every_number_of_a_chip_has_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["chips", "nvidia-h100-sxm-80g", "--format=json"]) == 0
    document = json.loads(capsys.readouterr().out)
    numbers: dict[str, dict[str, Any]] = {n["name"]: n for n in document["numbers"]}

    bf16 = numbers["peak/bf16"]
    assert (bf16["value"], bf16["unit"], bf16["confidence"]) == (989, "TFLOP/s", "high")
    assert bf16["source"].startswith("https://")
    assert (numbers["peak/mxfp8"]["value"], numbers["peak/mxfp8"]["state"]) == (None, "unsupported")
    assert numbers["memory_fraction"]["unit"] == "fraction"


@pytest.mark.parametrize("name", chip_names())
def test_the_sheet_of_every_chip_can_be_shown(name: str) -> None:
    document = chip_document(name)

    assert json.loads(json.dumps(document)) == document
    for number in document["numbers"]:
        assert (number["value"] is None) == (number["unit"] is None) == (number["state"] != "known")


@pytest.mark.parametrize("name", cluster_names())
def test_a_cluster_has_the_sheets_of_all_its_parts(name: str) -> None:
    document = cluster_sheets(name)

    assert {sheet["name"] for sheet in document["chip_sheets"]} == {*document["chips"]}
    links = {sheet["name"] for sheet in document["link_sheets"]}
    assert {pool[end] for pool in document["pools"] for end in ("scale_up", "scale_out")} <= links


def test_a_sheet_is_a_table_with_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["chips", "nvidia-h100-sxm-80g"]) == 0
    text = capsys.readouterr().out
    for part in ("peak/bf16", "989 TFLOP/s", "high", "[1]", "https://", "unsupported"):
        assert part in text


def test_what_a_cluster_overrides_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster: Any = dict(load_cluster("hybrid-64").document)
    cluster["pools"][1]["overrides"] = {"chip": {"memory": "70 GiB"}}
    path = tmp_path / "cluster.yaml"
    path.write_text(json.dumps(cluster), encoding="utf-8")

    assert run(["clusters", str(path)]) == 0
    text = capsys.readouterr().out
    assert "/pools/1/overrides/chip/memory: 70 GiB" in text
    assert "infiniband-hdr" in text


@pytest.mark.parametrize("name", cluster_names())
def test_the_file_of_a_cluster_is_that_cluster(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["clusters", name, "--document"]) == 0
    path = tmp_path / "mine.yaml"
    path.write_text(capsys.readouterr().out, encoding="utf-8")

    assert load_cluster(path) == load_cluster(name)


def test_the_file_of_no_cluster_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["clusters", "--document"]) == 2
    assert "--document: needs a NAME" in capsys.readouterr().err


def test_links_are_listed_with_units(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["links"]) == 0
    text = capsys.readouterr().out
    rows = {words[0]: words[1:] for line in text.splitlines() if (words := line.split())}

    assert set(link_names()) <= set(rows)
    assert rows["nvlink4"][:4] == ["450", "GB/s", "1.9", "us"]
    assert rows["metaxlink"][0] == "?"


@pytest.mark.parametrize("command", ["chips", "links", "clusters"])
def test_an_unknown_name_is_bad_input(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "h1000"]) == 2
    assert "must name a known" in capsys.readouterr().err
