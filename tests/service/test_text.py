"""Numbers and tables for people."""

import pytest
from rich.console import Console, RenderableType

from service.cli.text.plan_text import show_plan, step_text
from service.cli.text.quantities import (
    bar,
    count,
    gibibytes,
    memory_text,
    percent,
    seconds,
    seconds_pair,
)
from service.cli.text.runs import layers_text, runs_of
from tests.service.fixtures import plan_document, stage


def text_of(renderable: RenderableType, width: int = 120) -> str:
    console = Console(width=width, record=True, quiet=False, file=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (2e-9, "2 ns"),
        (2.5e-6, "2.5 us"),
        (0.0123, "12.3 ms"),
        (1.5, "1.5 s"),
        (123.4, "123 s"),
        (12345.6, "12,346 s"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert seconds(value) == text


def test_other_quantities() -> None:
    assert gibibytes(80 * 2**30) == "80.0 GiB"
    assert seconds_pair(0.0408, 0.0838) == "40.8/83.8 ms"
    assert seconds_pair(0, 2000) == "0/2,000 s"
    assert seconds_pair(0, 1e-9) == "0/0.001 us"
    assert count(70.6e9) == "70.6 B"
    assert count(12) == "12"
    assert percent(0.123) == "12.3 %"


@pytest.mark.parametrize("share", [-1, 0, 0.3, 0.999, 1, 7, float("inf")])
def test_a_bar_keeps_its_width(share: float) -> None:
    assert len(bar(share, width=10)) == 10


def test_a_bar_grows_with_its_share() -> None:
    assert bar(0, width=2) == "  "
    assert bar(0.5, width=2) == "█ "
    assert bar(1 / 16, width=2) == "▏ "
    assert bar(1, width=2) == "██"


@pytest.mark.parametrize(("used", "style"), [(0.5, "green"), (0.97, "yellow"), (1.5, "red")])
def test_memory_warns_by_colour(used: float, style: str) -> None:
    assert memory_text(used, 1.0).style == style


def test_layers_name_their_ranges_and_ends() -> None:
    apart = stage("a", 0, 0, chunks=[[4, 6], [8, 10]], embedding=False)
    many = stage("a", 0, 0, chunks=[[4 * v, 4 * v + 2] for v in range(5)], embedding=False)

    assert layers_text([stage("a", 0, 10)]) == "10 (0-9) +E"
    assert layers_text([apart]) == "4 (4-5,8-9)"
    assert layers_text([many]) == "10 (0-1,..)"
    assert layers_text([stage("a", 2, 5), stage("a", 5, 8)]) == "3 each (2-7)"


def test_stages_that_are_alike_are_a_run() -> None:
    stages = [
        stage("a", 0, 2),
        *(stage("a", 2 * k, 2 * k + 2, forward_s=k) for k in range(1, 15)),
        stage("b", 30, 31, ep=8),
        stage("b", 31, 32, ep=8),
    ]
    runs = runs_of(stages, collapse=True)

    assert [run.label for run in runs] == ["0", "1-14 x14", "15", "16"]
    assert runs[1].largest("forward_s") == 14
    assert len(runs_of(stages, collapse=False)) == 17


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_plan_fits_the_width(width: int) -> None:
    text = text_of(show_plan(plan_document()), width)

    assert max(len(line) for line in text.splitlines()) <= width


def test_a_plan_says_how_many_chips_of_a_kind_it_uses() -> None:
    text = text_of(show_plan(plan_document()))

    assert "56 of 64 x nvidia-a100-sxm-80g" in text
    assert "per used chip" in text


def test_a_plan_says_what_people_ask_first() -> None:
    text = text_of(show_plan(plan_document()))

    for part in ("2 s", "131,072 tokens/s", "MFU 35.0 %", "gap 5.3 %", "4 copies", "does not fit"):
        assert part in text


def test_a_step_time_comes_with_its_interval() -> None:
    found = {"step_time_s": 2.0, "interval_s": [1.5, 2.5]}

    assert step_text(found) == "2 s  (90 %: 1.5 s to 2.5 s)"
    assert step_text({"step_time_s": 2.0}) == "2 s"
