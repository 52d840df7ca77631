"""Sections that benchmarks write, and what they make of their findings."""

from pathlib import Path

import pytest

from benchmarks.baselines import Row, summary
from benchmarks.bench import Line, Measured, cells, keep, kept, medians
from benchmarks.frozen import problem_names
from benchmarks.sections import write_section


def measured(seconds: float) -> Measured:
    fields = Measured.__dataclass_fields__
    return Measured(**dict.fromkeys(fields, seconds))


def test_a_section_is_added_then_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\ntext\n", encoding="utf-8")

    write_section("one", "first", page)
    write_section("two", "other", page)
    write_section("one", "second", page)

    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Title\n\ntext\n")
    assert "first" not in text
    assert text.index("second") < text.index("other")
    assert text.count("<!-- one: begin -->") == 1


def test_medians_of_proofs_are_of_the_runs_that_had_one() -> None:
    found = medians([measured(s) for s in (1.0, 2.0, 9.0)], 1)

    assert (found.warm_s, found.certificate_s) == (2.0, 1.0)


def test_a_line_can_be_measured_anew(tmp_path: Path) -> None:
    first, second = problem_names()[:2]
    path = tmp_path / "found.json"
    lines = {
        name: Line(medians=measured(1.0), runs=5, proofs=1, evaluator="9")
        for name in (second, first)
    }

    keep(lines, path)

    assert list(kept(path)) == [first, second]
    assert kept(path) == lines
    assert len(cells(first, lines[first])) == 10


@pytest.mark.parametrize(("plan_s", "expected"), [(5.0, "1.00 to 2.00"), (None, "1.00 to 1.00")])
def test_the_front_page_has_the_range_of_speed_ups(plan_s: float | None, expected: str) -> None:
    rows = [
        Row(
            cluster="c",
            model=model,
            baselines={"uniform": 10.0, "amp": 12.0, "metis": None},
            plans=dict.fromkeys(("any", "flagscale", "megatron"), seconds),
        )
        for model, seconds in (("a", 10.0), ("b", plan_s))
    ]

    assert summary(rows).splitlines()[-1] == f"| c | {expected} | {expected} | {expected} |"
