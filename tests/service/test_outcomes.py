"""One table says how every error ends."""

import importlib
from collections.abc import Iterator

import pytest

from costmodel.errors import HaplanError, InputError, UnknownNameError, Violation
from service.cli.questions import option_name
from service.outcomes import TABLE, ExitCode, lines_of, outcome_of, problem_of
from tests.project.sources import PACKAGES, python_files, relative

CAUGHT_INSIDE = {
    "service.api.problems",
    "costmodel.calibration.case",
    "runner.launch",
    "runner.sweep.launch",
}
"""Modules whose errors never reach a face: they carry something to their own catcher."""


def subclasses(base: type[HaplanError]) -> Iterator[type[HaplanError]]:
    for found in base.__subclasses__():
        yield found
        yield from subclasses(found)


def test_every_public_error_is_in_the_table() -> None:
    for path in python_files(*(p for p in PACKAGES if not p.startswith(("runner", "client")))):
        importlib.import_module(relative(path)[:-3].replace("/", ".").removesuffix(".__init__"))
    public = {error for error in subclasses(HaplanError) if not error.__name__.startswith("_")}
    inner = {error for error in public if error.__module__ in CAUGHT_INSIDE}

    assert public - inner <= set(TABLE)


@pytest.mark.parametrize("error", TABLE)
def test_exit_code_and_status_agree(error: type[HaplanError]) -> None:
    outcome = TABLE[error]

    assert (outcome.exit_code is ExitCode.INTERNAL) == (outcome.status in (500, 503))
    assert outcome.type == f"urn:haplan:problem:{outcome.name}"


def test_exit_codes_are_fixed() -> None:
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 70]


def test_problem_types_differ() -> None:
    assert len({outcome.name for outcome in TABLE.values()}) == len(TABLE)


def test_a_subclass_ends_like_its_base() -> None:
    class SpecialError(InputError):
        pass

    assert outcome_of(SpecialError([])) is TABLE[InputError]


def test_a_problem_has_every_violation_with_its_pointer() -> None:
    faults = [
        Violation(field="/job/precision", value="x", rule="must be known", fix="write bf16"),
        Violation(field="/cluster line 3", value="x", rule="must be text", fix="quote it"),
        Violation(field="file.yaml", value="x", rule="must exist", fix="give another"),
        Violation(field="", value=[], rule="must be a mapping", fix="write one"),
    ]
    problem = problem_of(InputError(faults))

    assert [error.pointer for error in problem.errors] == ["#/job/precision", "#/cluster", "", "#"]
    assert problem.errors[0].fix == "write bf16"


def test_lines_are_one_for_each_violation() -> None:
    error = UnknownNameError(kind="chip", name="a1000", known=["a100"])

    assert lines_of(error) == ["chip: must name a known chip, got 'a1000'; did you mean a100?"]
    assert lines_of(HaplanError("why")) == ["why"]


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("/job/global_batch_size", "--global-batch-size"),
        ("/model", "MODEL"),
        ("/cluster/pools/0/chip", "CLUSTER /pools/0/chip"),
        ("/cluster x.yaml line 3", "CLUSTER x.yaml line 3"),
        ("/target", "--target"),
        ("/layout/pipelines", "--layout /pipelines"),
        ("chips/x.yaml: peak", "chips/x.yaml: peak"),
    ],
)
def test_fields_are_called_what_the_command_line_calls_them(field: str, name: str) -> None:
    assert option_name(field) == name
