"""Executes a plan with torch processes on CPU and compares it with a one-process reference."""

from runner.execute import ExecutionError
from runner.report import Report
from runner.validate import validate

__all__ = ["ExecutionError", "Report", "validate"]
