"""Where a command's answer goes: the document or its table to stdout, all else to stderr."""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from costmodel.errors import InputError

PLAIN_WIDTH = 120
"""Of text that goes to a file or a pipe."""
LEAST_WIDTH = 80
"""What the tables need; a narrower terminal wraps the lines."""

Document = dict[str, Any]


class Format(StrEnum):
    """What stdout carries."""

    TEXT = "text"
    JSON = "json"


def console(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal or `COLUMNS` say, but wide enough for the tables."""
    found = Console(stderr=stderr, highlight=False)
    unknown = not found.is_terminal and "COLUMNS" not in os.environ
    width = PLAIN_WIDTH if unknown else max(LEAST_WIDTH, found.width)
    return Console(stderr=stderr, highlight=False, width=width)


def show_text(renderable: RenderableType) -> None:
    """Print for people; in a file or a pipe no line ends in blanks."""
    out = console()
    if out.is_terminal:
        out.print(renderable)
        return
    with out.capture() as captured:
        out.print(renderable)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def to_json(document: Document) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def emit(
    document: Document,
    show: Callable[[Document], RenderableType],
    *,
    output_format: Format,
    path: Path | None,
) -> None:
    """Print `document` in the chosen format and, where a path is given, keep it there as JSON."""
    if path is not None:
        save(to_json(document) + "\n", path)
    if output_format is Format.JSON:
        sys.stdout.write(to_json(document) + "\n")
    else:
        show_text(show(document))


def save(text: str, path: Path, *, field: str = "--output") -> None:
    """Write `text` whole or not at all. Raises InputError of the option `field` where it cannot."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            file.write(text)
        Path(file.name).chmod(0o644)
        Path(file.name).replace(path)
    except OSError as error:
        raise InputError.of(
            field=field,
            value=str(path),
            rule="must be a file that can be written",
            fix=f"choose another path ({error.strerror})",
        ) from error


@contextmanager
def progress(message: str) -> Generator[Callable[[str], None]]:
    """A spinner on stderr while the block runs, if a person watches; the block may add to it."""
    watched = console(stderr=True)
    if not watched.is_terminal:
        yield lambda _addition: None
        return
    with watched.status(message) as status:
        yield lambda addition: status.update(f"{message}: {addition}")
