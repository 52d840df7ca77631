"""Suggestions for names that are not known."""

import pytest

from costmodel.errors import suggest
from costmodel.hardware.read import chip_names, link_names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nvidia-h100", "nvidia-h100-sxm-80g"),
        ("H100", "nvidia-h100-sxm-80g"),
        ("nvidia-a100", "nvidia-a100-sxm-80g"),
        ("h20", "nvidia-h20-96g"),
        ("mi300", "amd-mi300x"),
        ("nvidia-h100-sxm-80gb", "nvidia-h100-sxm-80g"),
    ],
)
def test_what_people_type_for_a_chip(name: str, expected: str) -> None:
    assert expected in suggest(name, chip_names())


def test_case_does_not_count() -> None:
    assert all(found.startswith("roce-") for found in suggest("RoCE", link_names()))


def test_nothing_alike_suggests_nothing() -> None:
    assert suggest("zzzzqq", chip_names()) == ()
