"""Documentation may only promise what exists."""

import re
from pathlib import Path

import pytest

from tests.project.sources import ROOT, relative, text_files

DOCS = [path for path in text_files() if path.suffix == ".md"]
MAKE_COMMAND = re.compile(r"`make ([a-z][a-z -]*)`|^make ([a-z][a-z -]*)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|home|root|Users|mnt|opt)/[\w.-]+")


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


@pytest.mark.parametrize("path", text_files(), ids=relative)
def test_no_file_names_a_place_on_one_machine(path: Path) -> None:
    assert MACHINE_PATH.findall(path.read_text(encoding="utf-8")) == []
