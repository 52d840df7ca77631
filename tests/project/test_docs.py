"""Documentation may only promise what exists."""

import re
from pathlib import Path

import pytest

from service.api.app import create_app
from service.api.settings import Settings
from service.cli.main import build_app, run
from tests.project.sources import ROOT, relative, text_files

DOCS = [path for path in text_files() if path.suffix == ".md"]
MAKE_COMMAND = re.compile(r"`make ([a-z][a-z -]*)`|^make ([a-z][a-z -]*)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home|root|Users|mnt|opt)/[\w.-]+")


COMMAND = re.compile(r"^haplan ([a-z]+)(.*)$", re.MULTILINE)
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def make_targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", text, flags=re.MULTILINE))


@pytest.mark.parametrize("path", DOCS, ids=relative)
def test_make_commands_exist(path: Path) -> None:
    commands = MAKE_COMMAND.findall(path.read_text(encoding="utf-8"))
    promised = {target for pair in commands for target in " ".join(pair).split()}

    assert promised <= make_targets()


@pytest.mark.parametrize("path", DOCS, ids=relative)
def test_links_lead_somewhere(path: Path) -> None:
    links: list[str] = LINK.findall(path.read_text(encoding="utf-8"))

    assert [link for link in links if not (path.parent / link).exists()] == []


def test_no_file_names_a_place_on_one_machine() -> None:
    found = {relative(p): MACHINE_PATH.findall(p.read_text(encoding="utf-8")) for p in text_files()}

    assert {path: names for path, names in found.items() if names} == {}


def option_names(command: str, capsys: pytest.CaptureFixture[str]) -> set[str]:
    assert run([command, "--help"]) == 0
    return set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


@pytest.mark.parametrize("path", DOCS, ids=relative)
def test_commands_have_the_options_that_are_shown(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks: list[str] = SHELL_BLOCK.findall(path.read_text(encoding="utf-8"))
    for command, rest in COMMAND.findall("".join(blocks)):
        assert set(re.findall(r"--[a-z-]+", rest)) <= option_names(command, capsys)


@pytest.mark.parametrize("path", DOCS, ids=relative)
def test_python_blocks_are_python(path: Path) -> None:
    for block in PYTHON_BLOCK.findall(path.read_text(encoding="utf-8")):
        compile(block, str(path), "exec")


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    names = {str(command.name) for command in build_app().registered_commands}

    assert {name for name in names if f"`haplan {name}" not in text} == set()


def test_every_path_is_documented() -> None:
    text = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
    paths: dict[str, object] = create_app(Settings(database="sqlite://")).openapi()["paths"]

    assert {path for path in paths if f" {path}`" not in text} == set()


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}

    assert {page for page in pages if f"({page})" not in index} == set()
