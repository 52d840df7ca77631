"""Plan files."""

from pathlib import Path
from typing import Any

from costmodel.errors import InputError
from costmodel.safe_document import load_document

Document = dict[str, Any]

PLAN_SCHEMA = "haplan.plan/v1"
MAX_PLAN_BYTES = 256 * 2**20
"""A plan of 100,000 chips names every node."""


def read_plan_file(path: Path) -> Document:
    """A plan as a document."""
    document = load_document(path, max_bytes=MAX_PLAN_BYTES)
    if document.get("schema") != PLAN_SCHEMA:
        raise InputError.of(
            field=f"{path} /schema",
            value=document.get("schema"),
            rule=f"must be {PLAN_SCHEMA}",
            fix="give a file that `haplan plan -o` wrote",
        )
    return document
