"""Executes a plan with torch processes on CPU and compares it with a one-process reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runner.launch import ExecutionError

if TYPE_CHECKING:
    from runner.report import Report

__all__ = ["ExecutionError", "validate"]


def validate(
    document: Mapping[str, Any], *, max_ranks: int = 16, seed: int = 0, timeout_s: float = 300.0
) -> Report:
    """Checks a plan document for contradictions, then executes it at small size.

    max_ranks: processes at most. seed: of weights and tokens. timeout_s: seconds until the
    processes are ended. Raises InputError for what is not a plan or cannot be executed,
    ExecutionError when the processes do not finish.
    """
    from runner.validation import validated

    return validated(document, max_ranks=max_ranks, seed=seed, timeout_s=timeout_s)
