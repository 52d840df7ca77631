"""Cases on a mix of chips, from stated stages to a layout."""

from collections.abc import Mapping
from typing import Any

import pytest

from costmodel.calibration.case import Case, case_of
from costmodel.calibration.prepare import prepare
from costmodel.calibration.score import Scored, Skipped, score

ROW: Mapping[str, Any] = {
    "id": "mix",
    "quality": "B",
    "model": {
        "name": "small",
        "layers": 24,
        "hidden": 1024,
        "heads": 16,
        "ffn_hidden": 4096,
        "gated_mlp": False,
        "vocab": 52256,
        "seq": 1024,
    },
    "hardware": {
        "pools": [
            {
                "chip": "nvidia-v100-sxm-16g",
                "nodes": 3,
                "chips_per_node": 4,
                "scale_up_gbit_per_s": 170,
                "scale_out_gbit_per_s": 10,
            },
            {"chip": "nvidia-t4", "nodes": 1, "chips_per_node": 4},
        ]
    },
    "layout": {
        "tp": 1,
        "pp": 4,
        "dp": 4,
        "mbs": 1,
        "gbs": 32,
        "units_per_stage": [7, 7, 6, 10],
    },
    "measured": {"step_time_s": 1.5},
}


def mix(**layout: Any) -> Case:
    return case_of({**ROW, "layout": {**ROW["layout"], **layout}})


def test_stages_fill_the_chips_in_order() -> None:
    prepared = prepare(mix())
    stages = prepared.layouts[0][0].pipelines[0].stages

    assert [stage.option.pool for stage in stages] == ["pool0"] * 3 + ["pool1"]
    assert [stage.chunks[0] for stage in stages] == [(0, 5), (5, 12), (12, 18), (18, 24)]
    assert prepared.problem.cluster.pools[0].scale_out.bytes_per_s == pytest.approx(1.25e9)
    assert isinstance(score(mix()), Scored)


def test_stages_of_their_own_width_are_read() -> None:
    stages = [
        {"units": 12, "replicas": [{"chip": "nvidia-v100-sxm-16g", "tp": 4}] * 3},
        {"units": 14, "replicas": [{"chip": "nvidia-t4", "tp": 4}]},
    ]
    result = score(mix(units_per_stage=None, stages=stages))

    assert isinstance(result, Skipped)
    assert "different data parallelism" in result.reason


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"units_per_stage": [15, 15], "pp": 2, "dp": 8}, "two kinds of chip"),
        ({"units_per_stage": [7, 7, 7, 7]}, "units of the stages"),
        ({"units_per_stage": None}, "layout stages not stated"),
        ({"gbs": 33}, "not a multiple of mbs dp"),
        ({"gbs": None}, "layout gbs not stated"),
    ],
)
def test_what_is_not_modelled_says_why(changes: Mapping[str, Any], expected: str) -> None:
    result = score(mix(**changes))

    assert isinstance(result, Skipped)
    assert expected in result.reason
