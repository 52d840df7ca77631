"""The frozen problems of the benchmarks can be read, and their spaces are what they were."""

import pytest

from benchmarks.frozen import frozen, problem_names


def test_there_is_a_problem_for_every_line_of_the_table() -> None:
    assert len(problem_names()) == 9
    assert {frozen(name).target for name in problem_names()} == {"any", "flagscale", "megatron"}


@pytest.mark.parametrize("name", problem_names())
def test_the_space_is_the_frozen_one(name: str) -> None:
    """Who changes the space freezes the problems anew, and measures them anew."""
    assert frozen(name).changes() == []


def test_a_space_that_changed_is_named() -> None:
    given = frozen(problem_names()[0])
    given.space["document"]["max_stages"] = 1

    assert given.changes() == ["max_stages"]


def test_an_unknown_problem_is_refused() -> None:
    with pytest.raises(KeyError):
        frozen("nothing")
