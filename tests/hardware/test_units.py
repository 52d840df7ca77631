"""Text with units: exact values, dimension checks, and a round trip for every unit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.units import (
    EXAMPLES,
    UNITS,
    Dimension,
    format_rate,
    parse_quantity,
)


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("900 GB/s", Dimension.BYTES_PER_S, 900e9),
        ("400 Gb/s", Dimension.BYTES_PER_S, 50e9),
        ("400Gbps", Dimension.BYTES_PER_S, 50e9),
        ("80 GiB", Dimension.BYTES, 80 * 2**30),
        ("80 GB", Dimension.BYTES, 80e9),
        ("2 us", Dimension.SECONDS, 2e-6),
        ("989 TFLOP/s", Dimension.FLOP_PER_S, 989e12),
        ("1.979 PFLOP/s", Dimension.FLOP_PER_S, 1979e12),
        ("2.5 USD", Dimension.USD, 2.5),
        (" 1e-3 s ", Dimension.SECONDS, 1e-3),
    ],
)
def test_value_in_si(text: str, dimension: Dimension, value: float) -> None:
    assert parse_quantity(text, dimension) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "dimension", "advice"),
    [
        (80, Dimension.BYTES, '"80 GB"'),
        ("80", Dimension.BYTES, '"80 GB"'),
        (450.5, Dimension.BYTES_PER_S, '"450.5 GB/s"'),
        ("80 Gb", Dimension.BYTES, '"80 GB"'),
        ("80 GB", Dimension.BYTES_PER_S, '"900 GB/s"'),
        ("80 gb", Dimension.BYTES, '"80 GB"'),
        ("-1 GB", Dimension.BYTES, '"80 GB"'),
        ("1e999 GB", Dimension.BYTES, '"80 GB"'),
        ("GB", Dimension.BYTES, '"80 GB"'),
        ("", Dimension.SECONDS, '"2 us"'),
        (None, Dimension.SECONDS, '"2 us"'),
        (True, Dimension.FLOP_PER_S, '"989 TFLOP/s"'),
    ],
)
def test_mistakes_name_the_field_and_how_to_write_it(
    text: object, dimension: Dimension, advice: str
) -> None:
    with pytest.raises(InputError) as caught:
        parse_quantity(text, dimension, field="/chip/memory")
    (violation,) = caught.value.violations
    assert violation.field == "/chip/memory"
    assert advice in violation.fix


@given(st.sampled_from(sorted(UNITS)), st.floats(0, 1e6, allow_subnormal=False))
def test_every_unit_scales_its_number(unit: str, number: float) -> None:
    dimension, factor = UNITS[unit]
    assert parse_quantity(f"{number!r} {unit}", dimension) == number * factor


def test_every_dimension_has_a_valid_example() -> None:
    for dimension in Dimension:
        assert parse_quantity(EXAMPLES[dimension], dimension) > 0


def test_text_for_people() -> None:
    assert format_rate(450e9) == "450 GB/s"
    assert format_rate(312e12, "FLOP/s") == "312 TFLOP/s"


@given(st.floats(1e3, 1e18))
def test_text_for_people_stays_within_half_a_percent(bytes_per_s: float) -> None:
    assert parse_quantity(format_rate(bytes_per_s), Dimension.BYTES_PER_S) == pytest.approx(
        bytes_per_s, rel=0.006
    )
