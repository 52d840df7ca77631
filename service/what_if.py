"""What would become of a plan in other worlds: a wrong cost model, one more node."""

from dataclasses import asdict
from typing import Any

from planner import Plan
from planner.node_values import node_values
from planner.uncertainty import robustness

Document = dict[str, Any]


def what_if_document(plan: Plan) -> Document:
    """The parts of an explanation that need a search."""
    found = robustness(plan)
    return {
        "robustness": None if found is None else asdict(found) | {"survives": found.survives},
        "node_values": [asdict(value) for value in node_values(plan)],
    }
