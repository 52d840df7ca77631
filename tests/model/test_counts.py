"""Every bundled config has exactly the parameters that were counted elsewhere."""

import pytest

from costmodel.model.parameters import parameter_counts
from costmodel.model.read import load_model, model_names
from tests.model.counts import COUNTS

ROUNDING = 0.5e-4 * 1e9
"""Active counts are given in billions with four decimals."""


def test_every_bundled_model_but_two_has_a_count() -> None:
    assert len(COUNTS) == 148
    assert set(model_names()) - set(COUNTS) == {"minimax-m3", "step-3.7-flash"}


@pytest.mark.parametrize("name", COUNTS)
def test_total_is_exact(name: str) -> None:
    assert parameter_counts(load_model(name)).total == COUNTS[name]["total"]


@pytest.mark.parametrize("field", ["expert", "embedding", "component"])
def test_parts_are_exact(field: str) -> None:
    known = {name: counts[field] for name, counts in COUNTS.items() if field in counts}
    ours = {name: getattr(parameter_counts(load_model(name)), field) for name in known}

    assert len(known) > 5
    assert ours == known


def test_active_agrees_to_the_digits_given() -> None:
    for name, known in COUNTS.items():
        counts = parameter_counts(load_model(name))
        if "active_billions" in known:
            assert abs(counts.active - known["active_billions"] * 1e9) <= ROUNDING, name
        if "active_without_embedding_billions" in known:
            active = known["active_without_embedding_billions"] * 1e9
            assert abs(counts.active - counts.embedding - active) <= ROUNDING, name


def test_multi_token_prediction_is_counted_beside_the_total() -> None:
    """https://github.com/pytorch/torchtitan/pull/4441: 290,942,278,866 with one such layer."""
    counts = parameter_counts(load_model("deepseek-v4-flash"))

    assert counts.total + counts.mtp == 290_942_278_866


def test_dense_models_use_all_their_parameters() -> None:
    counts = parameter_counts(load_model("llama3-70b"))

    assert (counts.active, counts.expert, counts.mtp) == (counts.total, 0, 0)
