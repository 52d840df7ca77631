"""The accuracy page is made from findings: every place filled, nothing typed, nothing by chance."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.accuracy_ablation import TERMS, VIEWS, ablated
from benchmarks.accuracy_page import findings, worst
from benchmarks.accuracy_page.cells import escaped, share, table
from benchmarks.accuracy_page.page import PLACE, filled, write_page
from costmodel.calibration.case import Case
from costmodel.calibration.fit import near_stack, pool, spreads, timed_cases
from costmodel.calibration.memory_fit import peaks
from costmodel.calibration.protocols import Held, known_stack, rows_of, unknown_stack
from costmodel.calibration.read import read_cases
from costmodel.safe_document import load_document
from costmodel.software.values import CONSTANTS

FILES = sorted((Path(__file__).parent / "cases").glob("*.jsonl"))
Findings = dict[str, Any]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Case]]:
    """Every fifth run, as a file."""
    path = tmp_path_factory.mktemp("cases") / "some.jsonl"
    lines = [line for file in FILES for line in file.read_text("utf-8").splitlines()[::5]]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path, list(read_cases([path]))


def view(held: list[Held]) -> Findings:
    rows = rows_of(held)
    return {
        "document": findings.document_of(rows),
        "predictions": findings.predictions(rows),
        "folds": findings.folds(held),
    }


@pytest.fixture(scope="module")
def found(cases: tuple[Path, list[Case]]) -> Findings:
    """What ``accuracy_protocols.py -o`` writes, of few runs."""
    path, rows = cases
    stacks = timed_cases(rows)
    pooled = pool(stacks)
    near = {name: near_stack(pooled, name, own) for name, own in stacks.items()}
    document = {
        "unknown stack": view(unknown_stack(stacks, pooled)),
        "known stack": view(known_stack(stacks, pooled, near)),
        "memory": findings.memory(peaks(rows)),
        "constants": findings.constants(pooled, near, spreads(pooled, near)),
        "as shipped": findings.shipped([path]),
    }
    return json.loads(json.dumps(document, allow_nan=False))


def test_the_page_is_filled_and_the_same_each_time(found: Findings, tmp_path: Path) -> None:
    page, again = tmp_path / "accuracy.md", tmp_path / "again" / "accuracy.md"
    again.parent.mkdir()
    write_page(found, None, page)
    write_page(found, None, again)
    text = page.read_text(encoding="utf-8")
    pictures = sorted((tmp_path / "accuracy").iterdir())

    assert not PLACE.search(text)
    assert text == again.read_text(encoding="utf-8")
    assert "Not run for this page" in text
    assert pictures
    for picture in pictures:
        assert f"(accuracy/{picture.name})" in text
        assert picture.stat().st_size < 150_000
        assert picture.read_bytes() == (again.parent / "accuracy" / picture.name).read_bytes()


def test_figures_are_those_of_the_findings(found: Findings, tmp_path: Path) -> None:
    """A changed finding changes the page."""
    page = tmp_path / "accuracy.md"
    found = json.loads(json.dumps(found))
    found["unknown stack"]["document"]["time_tuned"]["median_ape"] = 0.98765
    write_page(found, None, page)

    assert page.read_text(encoding="utf-8").count("98.8 %") == 2


def test_tables_keep_their_columns(found: Findings, tmp_path: Path) -> None:
    page = tmp_path / "accuracy.md"
    write_page(found, None, page)
    for block in page.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if line.startswith("|")]
        assert len({line.replace("\\|", "").count("|") for line in lines}) <= 1


def test_an_unknown_place_is_refused() -> None:
    with pytest.raises(KeyError):
        filled({})


def test_taking_nothing_away_leaves_the_held_out_errors(
    found: Findings, cases: tuple[Path, list[Case]], tmp_path: Path
) -> None:
    removed = ablated(cases[1], found, 1000)
    whole = removed["terms"][0]

    assert [term["name"] for term in removed["terms"]] == list(TERMS)
    for name in VIEWS:
        tuned = found[name]["document"]["time_tuned"]
        assert whole[name]["plain"]["n"] == tuned["n"]
        assert whole[name]["plain"]["median"] == pytest.approx(tuned["median_ape"], rel=1e-6)
        assert whole[name]["plain"]["mean"] == pytest.approx(tuned["mape"], rel=1e-6)
    write_page(found, json.loads(json.dumps(removed, allow_nan=False)), tmp_path / "accuracy.md")
    text = (tmp_path / "accuracy.md").read_text(encoding="utf-8")
    assert all(f"| {term} |" in text for term in TERMS)


def test_few_rows_of_a_stack_are_taken_away_from(
    found: Findings, cases: tuple[Path, list[Case]]
) -> None:
    removed = ablated(cases[1], found, 1)
    stacks = removed["terms"][0]["unknown stack"]["plain"]["stacks"]

    assert removed["terms"][0]["unknown stack"]["plain"]["n"] == len(stacks) > 1


def test_terms_that_are_taken_away_exist() -> None:
    changed = {name for change in TERMS.values() for name in change}

    assert changed <= {*CONSTANTS}


def test_a_run_has_the_explanation_of_its_kind() -> None:
    kinds = load_document(worst.KINDS.read_bytes())["kinds"]
    row = {"model": "GPT-OSS-120B", "precision": "MXFP8", "experts": 128}

    assert worst.explanation(row, kinds).startswith("128 experts")
    assert worst.explanation({"model": "any"}, [{"when": {"experts": [0, 8]}, "why": "w"}]) == (
        worst.UNEXPLAINED
    )
    assert worst.explanation({"experts": 8}, [{"when": {"experts": [0, 8]}, "why": "w"}]) == "w"


def test_cells() -> None:
    assert share(0.0514) == "5.1 %"
    assert share(0.05, sign=True) == "+5.0 %"
    assert share(None) == "-"
    assert escaped("a|b\nc") == "a\\|b c"
    assert table(["a"], [["b"]]) == "| a |\n| --- |\n| b |"
