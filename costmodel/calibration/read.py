"""Reads files of measured cases: one JSON object a line."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from costmodel.calibration.case import Case, case_of
from costmodel.errors import InputError
from costmodel.safe_document import load_document

MAX_FILE_BYTES = 100_000_000
"""Larger files are refused unread."""


def read_cases(paths: Iterable[Path]) -> tuple[Case, ...]:
    """Every case of these files, in order. Raises InputError naming file and line."""
    return tuple(case for path in paths for case in _read(path))


def _read(path: Path) -> Iterator[Case]:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise _refused(str(path), str(error.strerror), "give the path of a file") from error
    if size > MAX_FILE_BYTES:
        raise _refused(str(path), f"{size} bytes", f"give a file below {MAX_FILE_BYTES} bytes")
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield _case(line, f"{path}:{number}")


def _case(line: bytes, where: str) -> Case:
    row = load_document(line)
    missing = [key for key in ("id", "model", "measured") if key not in row]
    if missing:
        fix = f"add {', '.join(missing)} to the line"
        raise _refused(where, sorted(row), fix)
    return case_of(row)


def _refused(field: str, value: object, fix: str) -> InputError:
    return InputError.of(
        field=field, value=value, rule="must be a measured case a line, as JSON", fix=fix
    )
