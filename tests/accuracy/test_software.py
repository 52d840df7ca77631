"""Software profiles: what they state, and the intervals that come with them."""

import numpy as np
import pytest

from costmodel.calibration.convention import stack_convention
from costmodel.calibration.parameters import PARAMETERS
from costmodel.efficiency import DEFAULT_EFFICIENCY
from costmodel.errors import InputError
from costmodel.software import read
from costmodel.software.intervals import interval, relative_half_width
from costmodel.software.read import profile_names, software_profile
from costmodel.software.values import CONSTANTS
from costmodel.stage.block_costs import at_least
from tests.accuracy.test_bundled_cases import CASES, score_all


def test_every_profile_reads() -> None:
    assert {"default", "megatron-2021", "nanotron"} <= set(profile_names())
    for name in profile_names():
        assert software_profile(name).title
        stack_convention(name)


def test_an_unknown_stack_gets_the_default() -> None:
    assert software_profile("nobody's").name == "default"
    assert software_profile("nobody's").efficiency == DEFAULT_EFFICIENCY


def test_the_default_states_every_constant() -> None:
    document = read.sheet_document("software", "default")

    assert set(document["efficiency"]) == set(CONSTANTS)


def test_the_default_says_how_far_stacks_lie_apart() -> None:
    between = read.spreads_between_stacks()

    assert {*between} == {parameter.name for parameter in PARAMETERS}
    assert all(0.0 < spread < 3.0 for spread in between.values())


def test_a_wrong_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(folder: str, name: str) -> dict[str, object]:
        return {"title": f"{folder} {name}", "efficiency": {"gem": {"value": 1.0}}}

    monkeypatch.setattr(read, "sheet_document", wrong)
    software_profile.cache_clear()
    with pytest.raises(InputError, match="gem"):
        software_profile("nanotron")
    software_profile.cache_clear()


def test_intervals_widen_with_what_is_not_known() -> None:
    known, unknown = (relative_half_width(0.4, stack=stack) for stack in ("vtrain", ""))

    assert 0 < known < unknown < relative_half_width(0.4, class_defaults=True)
    assert unknown < relative_half_width(0.1)


def test_an_interval_encloses_the_prediction() -> None:
    evaluation = score_all(CASES[:1])[0][0].evaluation
    low, high = interval(evaluation)

    assert low < evaluation.step_time_s < high
    assert low * high == pytest.approx(evaluation.step_time_s**2)


def test_the_slower_of_host_and_device_counts() -> None:
    device = np.array([1e-3, 1.0])

    assert at_least(device, 0.0) == pytest.approx(device)
    assert at_least(device, 1e-3) == pytest.approx([2**0.5 * 1e-3, 1.0], rel=1e-5)
    assert at_least(device, 1.0)[0] == pytest.approx(1.0, rel=1e-5)
