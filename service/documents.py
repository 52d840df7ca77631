"""Plan files."""

from pathlib import Path
from typing import Any

from costmodel.errors import InputError
from costmodel.layout.read import layout_of
from costmodel.layout.rules_degrees import known_recompute, known_zero
from costmodel.layout.rules_structure import known_schedule
from costmodel.safe_document import load_document
from planner.plan_reading import check_schema, read_problem, unknown_pools
from service.collector import Collector

Document = dict[str, Any]

MAX_PLAN_BYTES = 256 * 2**20
"""A plan of 100,000 chips names every node."""
NAME_RULES = (known_zero, known_schedule, known_recompute)
"""A layout that breaks one of these cannot be read, let alone contradict itself."""


def read_plan_file(path: Path) -> Document:
    """A plan as a document."""
    document = load_document(path, max_bytes=MAX_PLAN_BYTES)
    faults = Collector()
    with faults.reading(f"{path} "):
        check_schema(document)
    faults.check()
    return document


def check_readable(document: Document) -> None:
    """Raise InputError with all that keeps a plan from being read.

    A plan that can be read may still contradict itself; that is for an execution to say.
    """
    problem = read_problem(document)
    if document.get("pipelines") == []:
        return
    broken = unknown_pools(document, problem.cluster)
    try:
        layout = layout_of(problem, document)
    except InputError as error:
        broken += error.violations
    else:
        broken += [v for rule in NAME_RULES for v in rule(problem, layout)]
    if broken:
        raise InputError(broken)
