"""Hostile and broken documents are refused quickly; honest ones are read."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costmodel.errors import InputError, UnsafeDocumentError
from costmodel.safe_document import MAX_DEPTH, load_document


@contextmanager
def within(seconds: float) -> Generator[None]:
    begin = time.process_time()
    yield
    assert time.process_time() - begin < seconds


def billion_laughs() -> str:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}, *a{i - 1}]" for i in range(1, 30)]
    return "\n".join(lines)


HOSTILE = {
    "aliases": billion_laughs(),
    "anchor alone": "a: &x 1",
    "python tag": "a: !!python/object/apply:os.system ['true']",
    "deep flow yaml": "a: " + "[" * 100_000,
    "deep block yaml": "\n".join(" " * i + "a:" for i in range(200)),
    "deep json": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "just too deep json": '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1),
    "many nodes": "a: [" + "1," * 1_000_000 + "1]",
    "large": "a: " + "x" * (5 * 2**20),
}
BROKEN = {
    "duplicate yaml": "a: 1\na: 2",
    "duplicate nested yaml": "b: {a: 1, a: 2}",
    "duplicate json": '{"a": 1, "a": 2}',
    "nan": "a: .nan",
    "infinity": "a: [1, .inf]",
    "overflow": "a: 1e999",
    "nan json": '{"a": NaN}',
    "huge integer": '{"a": 1' + "0" * 400 + "}",
    "absurd integer": '{"a": 1' + "0" * 9000 + "}",
    "number key": "1: a",
    "null key": "~: a",
    "list key": "? [a]\n: b",
    "not a mapping": "- a",
    "a path by mistake": "cluster.yaml",
    "empty": "",
    "two documents": "a: 1\n---\na: 2",
    "bad yaml": "a: [1",
    "tab": "a:\n\t- b",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_refused_at_once(text: str) -> None:
    with within(1.0), pytest.raises(UnsafeDocumentError):
        load_document(text)


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_broken_text_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(InputError) as caught:
        load_document(text)
    assert caught.value.violations[0].fix
    assert "\n" not in str(caught.value)


def test_a_huge_file_is_refused_by_its_size_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    path.touch()
    os.truncate(path, 2**30)
    with within(0.2), pytest.raises(UnsafeDocumentError, match="at most 4194304 bytes"):
        load_document(path)


@pytest.mark.parametrize("path", ["/dev/zero", "/", "/does/not/exist", "bad\0name"])
def test_only_plain_files_are_read(path: str) -> None:
    with pytest.raises(InputError):
        load_document(Path(path))


def test_bytes_that_are_not_utf8_are_refused() -> None:
    with pytest.raises(InputError, match="UTF-8"):
        load_document(b"a: \xff")


def test_scalars_follow_the_core_schema() -> None:
    text = "{no: no, day: 2024-05-01, time: 12:30, small: 1e-6, ten: 010, empty: , yes: true}"
    assert load_document(text) == {
        "no": "no",
        "day": "2024-05-01",
        "time": "12:30",
        "small": 1e-6,
        "ten": 10,
        "empty": None,
        "yes": True,
    }


def test_the_suffix_decides_for_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("a: 1")
    with pytest.raises(InputError, match=r"a\.json"):
        load_document(path)
    path = tmp_path / "a.yaml"
    path.write_text("a: 1")
    assert load_document(path) == {"a": 1}


scalars = st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text()
values = st.recursive(
    scalars | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), values, max_size=4))
def test_json_round_trips(document: dict[str, object]) -> None:
    assert load_document(json.dumps(document)) == document


def test_infinities_are_null_only_where_asked_for() -> None:
    text = '{"a": [Infinity, 1.5, {"b": -Infinity}], "c": NaN, "d": 2}'
    with pytest.raises(InputError, match="finite"):
        load_document(text)
    read = load_document(text, infinite_as_null=True)
    assert read == {"a": [None, 1.5, {"b": None}], "c": None, "d": 2}
    assert load_document("a: [.inf, 1]", infinite_as_null=True) == {"a": [None, 1]}


def test_a_repeated_key_is_placed_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "twice.yaml"
    file.write_text("name: a\nname: b\n")
    with pytest.raises(InputError, match=r"twice\.yaml line 2, column 1"):
        load_document(file)
