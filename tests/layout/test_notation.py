"""Pipeline layouts in Megatron's notation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError
from costmodel.layout.notation import (
    NotatedStage,
    check_notation,
    notation_warnings,
    read_notation,
)


def shape(text: str) -> list[str]:
    """Each stage written out."""
    return [
        "E" * s.embedding + "t" * s.layers + "m" * s.mtp + "L" * s.loss for s in read_notation(text)
    ]


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("EtL", ["EtL"]),
        ("Et|tL", ["Et", "tL"]),
        ("Et*3|L", ["Ettt", "L"]),
        ("E(t|)*2L", ["Et", "t", "L"]),
        ("((t|)*2t|)*2L", ["t", "t", "t", "t", "t", "t", "L"]),
        ("Et, | ,t*2,mL", ["Et", "ttmL"]),
        ("Et\\|tL", ["Et", "tL"]),
        ("Et|(tt|)*0L", ["Et", "L"]),
        ("Et||L", ["Et", "", "L"]),
    ],
)
def test_strings_expand(text: str, stages: list[str]) -> None:
    assert shape(text) == stages


parts = st.sampled_from(["", "t", "tt", "ttt", "m", "tm", "ttm"])


@given(st.lists(parts, min_size=1, max_size=6), st.integers(1, 4))
def test_bracket_repeats_what_it_holds(stages: list[str], times: int) -> None:
    unit = "|".join(stages) + "|"

    assert shape(f"({unit})*{times}L") == stages * times + ["L"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Et|x", "not 'x'"),
        ("E(t|", "must close every bracket"),
        ("Et)|L", "closing bracket"),
        ("Et*|L", "number of at most 6 digits"),
        ("Et*9999999L", "number of at most 6 digits"),
        ("E((t*999)*999)*999L", "expand to at most"),
        ("(" * 20 + "t" + ")" * 20, "nest at most"),
        ("t" * 5000, "at most 4096 characters"),
        ("*3", "not '*'"),
    ],
)
def test_bad_strings_say_why(text: str, fault: str) -> None:
    with pytest.raises(InputError, match=r".") as caught:
        read_notation(text)

    assert fault in str(caught.value)


def rules_of(text: str, *, num_layers: int, mtp: int, num_stages: int) -> list[str]:
    violations = check_notation(
        read_notation(text), num_layers=num_layers, mtp=mtp, num_stages=num_stages
    )
    return [violation.rule for violation in violations]


def test_all_faults_of_a_string_come_at_once() -> None:
    found = rules_of("t|E|mt||t", num_layers=4, mtp=2, num_stages=4)

    assert found == [
        "must have 4 stages (pp x vp)",
        "must have the model's 4 layers",
        "must have as many m as the model's MTP depth 2",
        "must leave no stage without anything",
        "must have one E, in the first stage",
        "must have L in the last stage",
        "must have every m after the last t",
    ]


def test_mtp_stands_after_the_layers() -> None:
    assert rules_of("Etm|tL", num_layers=2, mtp=1, num_stages=2) == [
        "must have every m after the last t"
    ]


@given(st.integers(1, 80), st.integers(1, 40), st.integers(0, 2))
def test_offered_string_is_legal(layers: int, stages: int, mtp: int) -> None:
    (violation, *_) = check_notation(
        read_notation("E|||||t"), num_layers=layers, mtp=mtp, num_stages=stages
    )
    if stages > layers + 1:
        assert violation.fix == "use fewer stages"
        return
    offered = violation.fix.removeprefix("for example ")

    assert rules_of(offered, num_layers=layers, mtp=mtp, num_stages=stages) == []


def test_unusual_features_are_told() -> None:
    assert notation_warnings(read_notation("Et|mL")) != ()
    assert len(notation_warnings(read_notation("Et|m|m|LL|LL"))) == 3
    assert notation_warnings(read_notation("Et|tmL")) == ()


def test_stage_without_anything_is_empty() -> None:
    assert NotatedStage(layers=0, mtp=0, embedding=0, loss=0).is_empty
