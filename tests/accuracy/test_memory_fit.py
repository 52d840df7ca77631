"""The fit of what stacks print of their memory: it finds constants, and predicts what it lacks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from costmodel.calibration.case import Case, case_of
from costmodel.calibration.memory_fit import (
    BASES,
    Peak,
    fitted,
    known_stack,
    peaks,
    prior_of,
    shipped,
    unknown_stack,
    write_memory,
)
from costmodel.calibration.memory_seen import MemoryConstants, figure

GIB = 2.0**30
TRUE = MemoryConstants(lasting=1.2, working=1.1, beside_bytes=1.5 * GIB)


def case(stack: str, layers: int, tp: int, mbs: int) -> Case:
    row: dict[str, Any] = {
        "id": f"{stack}-{layers}-{tp}-{mbs}",
        "source": "a test",
        "stack": stack,
        "quality": "A",
        "model": {
            "name": "small",
            "layers": layers,
            "hidden": 2048,
            "heads": 16,
            "ffn_hidden": 8192,
            "gated_mlp": True,
            "vocab": 50304,
            "seq": 2048,
        },
        "hardware": {"chip": "nvidia-a100-sxm-80g", "n_chips": 8, "chips_per_node": 8},
        "parallel": {"tp": tp, "pp": 1, "mbs": mbs, "gbs": 64, "recompute": "none"},
        "measured": {"peak_memory_bytes": GIB},
    }
    return case_of(row)


def rows(stack: str, constants: MemoryConstants = TRUE) -> list[Peak]:
    """Of four models, measured as these constants say."""
    cases = [case(stack, n, tp, mbs) for n in (8, 16, 24, 32) for tp in (1, 4) for mbs in (1, 2)]
    found = peaks(cases)[stack]
    return [replace(row, measured=figure(row.shown, constants)) for row in found]


def test_the_fit_explains_what_its_rows_print() -> None:
    """They trade off under the priors, so that it is the figures that are found again."""
    own = fitted(rows("bloom"), BASES["card"])

    assert max(abs(row.error(own)) for row in rows("bloom")) < 0.015
    assert own.lasting > BASES["card"].lasting + 0.05
    assert fitted(rows("bloom"), TRUE).lasting == pytest.approx(TRUE.lasting)


def test_nothing_is_fitted_to_what_is_allocated() -> None:
    assert fitted(rows("nanotron"), MemoryConstants()) == MemoryConstants()


def test_an_unknown_stack_has_the_mean_of_those_that_print_the_same() -> None:
    stacks = {name: rows(name) for name in ("bloom", "flagperf", "nanotron", "torchtitan")}

    assert prior_of(stacks, "bloom") == fitted(stacks["flagperf"], BASES["card"])
    assert prior_of(stacks, "torchtitan") == BASES["reserved"]
    assert prior_of(stacks, "nanotron") == MemoryConstants()


@pytest.fixture(scope="module")
def stacks() -> dict[str, list[Peak]]:
    return {"bloom": rows("bloom"), "flagperf": rows("flagperf", MemoryConstants())}


def test_other_models_of_a_stack_tell_more_than_other_stacks(
    stacks: dict[str, list[Peak]],
) -> None:
    unknown, known = unknown_stack(stacks), known_stack(stacks)

    assert len(known["bloom"]) == len(unknown["bloom"]) == 16
    assert max(map(abs, known["bloom"])) < 0.02 < min(map(abs, unknown["bloom"]))


def test_the_profiles_hold_what_was_fitted(tmp_path: Path, stacks: dict[str, list[Peak]]) -> None:
    path = tmp_path / "bloom.yaml"
    path.write_text("runs:\n  memory: card\n  memory_lasting: 1.0\n  memory_beside_bytes: 0.0\n")

    own = shipped(stacks)["bloom"]
    write_memory(tmp_path, {"bloom": own})
    lines = path.read_text().splitlines()
    assert lines[1] == "  memory: card"
    assert float(lines[2].split(": ")[1]) == pytest.approx(own.lasting, abs=1e-3)
    assert float(lines[3].split(": ")[1]) == pytest.approx(own.beside_bytes, rel=1e-2)
