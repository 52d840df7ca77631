"""The size budget of CONTRIBUTING.md: what is over it is a design question."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.sources import PACKAGES, python_files, relative

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 40

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> Iterator[Function]:
    return (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def lines_without_docstring(function: Function) -> int:
    """Lines from `def` to the last one, less those of the docstring."""
    length = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return length
    docstring = function.body[0]
    return length - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


@pytest.mark.parametrize("path", python_files(*PACKAGES, "tests"), ids=relative)
def test_module_fits_its_budget(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    long_functions = {
        function.name: lines_without_docstring(function)
        for function in functions(ast.parse(text))
        if lines_without_docstring(function) > MAX_FUNCTION_LINES
    }

    assert len(text.splitlines()) <= MAX_MODULE_LINES
    assert not long_functions


def test_docstring_is_not_counted() -> None:
    source = 'def f():\n    """One.\n\n    Two.\n    """\n    return 1\n'

    assert [lines_without_docstring(f) for f in functions(ast.parse(source))] == [2]
