"""Plan files."""

from pathlib import Path
from typing import Any, cast

from costmodel.errors import InputError
from costmodel.hardware.read import load_cluster
from costmodel.jobs.read import load_job
from costmodel.layout.read import load_layout
from costmodel.model.read import load_model
from costmodel.problem import Problem
from costmodel.safe_document import load_document
from service.collector import Collector

Document = dict[str, Any]

INFEASIBLE = "infeasible"
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


def check_plan(document: Document) -> None:
    """Raise InputError with every rule that an edited plan breaks, before anything is computed."""
    faults = Collector()
    with faults.reading("/model/graph"):
        model = load_model({"graph": mapping_at(document, "model", "graph")})
    with faults.reading("/cluster/document"):
        cluster = load_cluster(mapping_at(document, "cluster", "document"))
    with faults.reading("/job"):
        job = mapping_at(document, "job")
        read_job = load_job({k: "auto" if v is None else v for k, v in job.items()})
    faults.check()
    if document.get("status") != INFEASIBLE:
        load_layout(Problem(model=model, cluster=cluster, job=read_job), document)


def mapping_at(document: Document, *names: str) -> Document:
    """The mapping under these names."""
    for name in names:
        value = document.get(name)
        if not isinstance(value, dict):
            raise InputError.of(field="", value=value, rule="must be a mapping", fix="plan again")
        document = cast("Document", value)
    return document
