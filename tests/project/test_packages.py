"""Every module can be imported, and importing does no work that shows."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project.sources import PACKAGES, ROOT, python_files


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "client" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize(
    "name", sorted(module_name(p) for p in python_files(*PACKAGES) if p.name != "__main__.py")
)
def test_module_can_be_imported(name: str) -> None:
    assert importlib.import_module(name).__name__ == name


@pytest.mark.parametrize(
    ("package", "heavy"),
    [
        ("costmodel", ["ortools", "torch", "fastapi"]),
        ("planner", ["torch", "fastapi"]),
        ("haplan_client", ["httpx", "numpy", "yaml"]),
        ("service.cli.main", ["torch", "fastapi", "ortools", "numba"]),
    ],
)
def test_import_stays_light(package: str, heavy: list[str]) -> None:
    code = f"import sys, {package}; print([m for m in {heavy!r} if m in sys.modules])"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("package", PACKAGES)
def test_package_is_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()
