"""Where a command's answer goes: the document or its table to stdout, all else to stderr."""

import json
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

Document = dict[str, Any]


class Format(StrEnum):
    """What stdout carries."""

    TEXT = "text"
    JSON = "json"


def console(*, stderr: bool = False) -> Console:
    """A console that is wide enough for the tables when nobody watches."""
    found = Console(stderr=stderr, highlight=False, soft_wrap=False)
    return (
        found if found.is_terminal else Console(stderr=stderr, highlight=False, width=PLAIN_WIDTH)
    )


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
        console().print(show(document))


def save(text: str, path: Path) -> None:
    """Write `text` whole or not at all."""
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
            field="--output",
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
