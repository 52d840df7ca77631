"""The page names every field of a job, its default and its flag, and every target."""

import re

import pytest

from haplan_client.schema.job import JobDocument
from planner.targets.registry import target_names
from service.cli.main import build_app, run
from tests.project.sources import ROOT

ROW = re.compile(r"^\| `([a-z_]+)` \| (?:`(--[a-z-]+)`|none) \| `?([a-z0-9.]+)`? \|", re.MULTILINE)
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def rows() -> dict[str, tuple[str, str]]:
    found: list[tuple[str, str, str]] = ROW.findall(PAGE)
    return {name: (flag, default) for name, flag, default in found}


def test_the_table_has_every_field_with_its_default() -> None:
    defaults = {
        name: "required" if field.is_required() else str(field.default)
        for name, field in JobDocument.model_fields.items()
    }

    assert {name: default for name, (_, default) in rows().items()} == defaults


def test_the_table_has_every_flag() -> None:
    [plan] = [c for c in build_app().registered_commands if c.name == "plan"]
    assert plan.callback is not None
    parameters = plan.callback.__annotations__
    flags = {name: f"--{name.replace('_', '-')}" if name in parameters else "" for name in rows()}

    assert {name: flag for name, (flag, _) in rows().items()} == flags


def test_every_target_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "--help"]) == 0
    text = capsys.readouterr().out

    bare = {name for name in target_names() if "@" not in name}
    assert {name for name in bare if f"`{name}`" not in PAGE or name not in text} == set()
