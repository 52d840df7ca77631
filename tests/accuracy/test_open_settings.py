"""What a case leaves open is decided by its memory, in one order, and never what it states."""

from typing import Any

import pytest

from costmodel.calibration.case import Case, case_of
from costmodel.calibration.memory_seen import shortfall
from costmodel.calibration.open_settings import OFFLOADED
from costmodel.calibration.prepare import Prepared, prepare

MODEL: dict[str, Any] = {
    "name": "large",
    "layers": 32,
    "hidden": 8192,
    "heads": 64,
    "kv_heads": 8,
    "ffn_hidden": 28672,
    "gated_mlp": True,
    "vocab": 32000,
    "seq": 4096,
    "tied": False,
}


def case(stack: str, model: dict[str, Any] | None = None, **parallel: Any) -> Case:
    row: dict[str, Any] = {
        "id": "x",
        "source": "a test",
        "stack": stack,
        "quality": "A",
        "model": {**MODEL, **(model or {})},
        "hardware": {"chip": "nvidia-h100-sxm-80g", "n_chips": 64, "chips_per_node": 8},
        "parallel": {"tp": 1, "pp": 1, "mbs": 1, "gbs": 64, "seq_parallel": True, **parallel},
        "measured": {"step_time_s": 1.0},
    }
    return case_of(row)


def option(prepared: Prepared) -> Any:
    return prepared.layouts[0][0].pipelines[0].stages[0].option


def lacks(prepared: Prepared) -> float:
    return shortfall(prepared, prepared.evaluations(prepared.problem.efficiency))


def test_sharding_that_is_not_stated_is_as_memory_needs() -> None:
    """28 billion parameters on one chip: 6 bytes of each do not fit, a 64th of 16 does."""
    large, small = prepare(case("nemo")), prepare(case("nemo", {"layers": 4}))

    assert (option(large).zero, option(small).zero) == (3, 1)
    assert "fully sharded, as memory needs it" in large.assumptions
    assert lacks(large) <= 1e-9


def test_what_is_stated_stays() -> None:
    stated = prepare(case("nemo", optimizer_sharding=True, recompute="none"))

    assert option(stated).zero == 1
    assert lacks(stated) > 0.9


@pytest.mark.parametrize(("etp", "expected"), [(None, 8), (1, 1)])
def test_experts_are_split_over_tp_before_all_is_sharded(etp: int | None, expected: int) -> None:
    """Whole experts: 17 billion parameters a chip; over tp an eighth of them."""
    experts = {"experts": 8, "topk": 2, "expert_ffn": 28672, "layers": 24}
    prepared = prepare(case("megatron-moe", experts, tp=8, ep=8, etp=etp))

    assert option(prepared).etp == expected


def test_a_custom_recomputation_is_as_much_as_memory_needs() -> None:
    """The share of the layers leaves just no stage short."""
    custom = prepare(case("mindformers", fsdp=True, mbs=8, gbs=512, recompute="custom [6, 3]"))

    [(_, plain), (_, full)] = custom.layouts
    assert plain + full == pytest.approx(1.0)
    assert lacks(custom) == pytest.approx(0.0, abs=1e-9)


def test_what_goes_to_the_host_costs_no_time_and_no_memory() -> None:
    """MaxText: activations that do not fit, if all is sharded and nothing is stated."""
    offloaded = prepare(case("maxtext-tpu", fsdp=True, mbs=8, gbs=512))
    stated = prepare(case("maxtext-tpu", fsdp=True, mbs=8, gbs=512, recompute="none"))
    small = prepare(case("maxtext-tpu", {"layers": 4}, fsdp=True))

    assert OFFLOADED in offloaded.assumptions
    assert OFFLOADED not in stated.assumptions + small.assumptions
    assert offloaded.layouts == stated.layouts
    assert lacks(offloaded) == 0.0 < lacks(stated)
