"""Where this project's own files are."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("costmodel", "planner", "runner", "service", "client/haplan_client")
GENERATED = {".venv", ".git", ".ruff_cache", ".pytest_cache", ".hypothesis", "demo-output"}
TEXT_SUFFIXES = {".py", ".pyi", ".md", ".toml", ".yaml", ".yml", ".txt", ".json", ".jsonl", ".csv"}
TEXT_NAMES = {"Makefile", "Dockerfile", "run", ".gitignore"}


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def text_files() -> list[Path]:
    return sorted(
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and not GENERATED.intersection(path.relative_to(ROOT).parts)
        and (path.suffix in TEXT_SUFFIXES or path.name in TEXT_NAMES)
    )


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
