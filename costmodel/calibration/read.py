"""Reads files of measured cases: one JSON object a line."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from costmodel.calibration.case import Case, case_of
from costmodel.errors import InputError, Violation
from costmodel.safe_document import load_document

MAX_FILE_BYTES = 100_000_000
"""Larger files are refused unread."""

SECTIONS = ("model", "hardware", "parallel", "measured", "layout")
NEEDED = ("id", "model", "measured")

MOST_FAULTS = 20
"""Faulty lines of one file that are named; a file of another kind has nothing but faults."""

CASE_RULE = "must be a measured case a line, as JSON"


def case_files(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The files, and of a folder every ``*.jsonl`` in it, by name; each file once.

    Raises InputError naming every folder without one.
    """
    found: list[Path] = []
    faults: list[Violation] = []
    for path in paths:
        inside = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
        found += inside
        if not inside:
            fix = "give a folder that holds them, or the files"
            faults.append(_fault(str(path), "no such file", "must hold *.jsonl files", fix))
    if faults:
        raise InputError(faults)
    return each_once(found)


def each_once(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The files in order, without those that came before under this or another path."""
    found: dict[Path, Path] = {}
    for path in paths:
        found.setdefault(path.resolve(), path)
    return tuple(found.values())


def read_some_cases(paths: Sequence[Path]) -> tuple[Case, ...]:
    """At least one case. Raises InputError where the files hold none, or as ``read_cases`` does."""
    cases = read_cases(case_files(paths))
    if not cases:
        names = ", ".join(map(str, paths))
        raise InputError.of(
            field=names,
            value="no case",
            rule="must hold a measured case: there is nothing to score",
            fix="write one case a line, as JSON",
        )
    return cases


def read_cases(paths: Iterable[Path]) -> tuple[Case, ...]:
    """Every case of these files, in order. Raises InputError naming every faulty file and line."""
    cases: list[Case] = []
    faults: list[Violation] = []
    for path in paths:
        try:
            cases += _read(path)
        except InputError as error:
            faults += error.violations
    if faults:
        raise InputError(faults)
    return tuple(cases)


def _read(path: Path) -> list[Case]:
    found: list[Case] = []
    faults: list[Violation] = []
    for number, line in _lines(path):
        try:
            found.append(_case(line, f"{path}:{number}"))
        except InputError as error:
            faults += error.violations
    if len(faults) > MOST_FAULTS:
        rest = f"{len(faults) - MOST_FAULTS} more"
        faults = [*faults[:MOST_FAULTS], _fault(str(path), rest, CASE_RULE, "correct them too")]
    if faults:
        raise InputError(faults)
    return found


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers."""
    try:
        if not path.is_file():
            raise _refused(str(path), _what_it_is(path), "give the path of a file")
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise _refused(str(path), f"{size} bytes", f"give a file below {MAX_FILE_BYTES} bytes")
        content = path.read_bytes()
    except OSError as error:
        raise _refused(str(path), str(error.strerror), "give the path of a file") from error
    lines = enumerate(content.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1)
    return iter([(number, line) for number, line in lines if line.strip()])


def _what_it_is(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    return "not a plain file" if path.exists() else "No such file or directory"


def _case(line: bytes, where: str) -> Case:
    try:
        row = load_document(line)
    except InputError as error:
        fix = "write the case as one JSON object on the line"
        raise InputError(
            replace(v, field=where, rule=CASE_RULE, fix=fix) for v in error.violations
        ) from None
    missing = [key for key in NEEDED if row.get(key) is None]
    if missing:
        raise _refused(where, sorted(row), f"add {', '.join(missing)} to the line")
    wrong = [key for key in SECTIONS if not isinstance(row.get(key) or {}, dict)]
    if wrong:
        fix = f"write {', '.join(wrong)} as `name: value` pairs"
        raise _refused(where, {key: row[key] for key in wrong}, fix)
    return case_of(row)


def _refused(field: str, value: object, fix: str) -> InputError:
    return InputError([_fault(field, value, CASE_RULE, fix)])


def _fault(field: str, value: object, rule: str, fix: str) -> Violation:
    return Violation(field=field, value=value, rule=rule, fix=fix)
