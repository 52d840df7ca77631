"""Reads job documents into Job values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from costmodel.errors import InputError, UnknownNameError
from costmodel.job import Job
from costmodel.safe_document import load_document
from costmodel.schedules.registry import schedules
from costmodel.software.read import constant_faults, profile_names
from costmodel.wire.read import validate
from haplan_client.schema.job import JobDocument

AUTO = "auto"


def load_job(source: str | Path | Mapping[str, object]) -> Job:
    """The job of a document, or of the YAML or JSON file at a path.

    Raises InputError with every violation.
    """
    document = source if isinstance(source, Mapping) else load_document(Path(source))
    return job_of(validate(JobDocument, document))


def job_of(document: JobDocument) -> Job:
    """A checked document as a value; ``auto`` leaves the choice open.

    Raises UnknownNameError for a schedule that is not registered.
    """
    check_schedule(document.schedule)

    def chosen(value: str) -> str | None:
        return None if value == AUTO else value

    micro_batch_size = document.micro_batch_size
    return Job(
        global_batch_size=document.global_batch_size,
        sequence_length=document.sequence_length,
        precision=document.precision,
        optimizer=document.optimizer,
        micro_batch_size=None if micro_batch_size == AUTO else micro_batch_size,
        schedule=chosen(document.schedule),
        recompute=chosen(document.recompute),
        vocab_divisor=document.vocab_divisor,
        gradient_bytes=document.gradient_bytes,
        moe_imbalance=document.moe_imbalance,
        software=software_of(document.software),
    )


def software_of(
    stated: str | Mapping[str, Any],
) -> str | Mapping[str, float | bool] | None:
    """The training stack of a job. Raises InputError for an unknown one and faulty constants."""
    if isinstance(stated, str):
        if stated != AUTO and stated not in profile_names():
            known = profile_names()
            raise UnknownNameError(
                kind="software profile", name=stated, known=known, field="/software"
            )
        return None if stated == AUTO else stated
    faults = constant_faults(stated, place="/software")
    if faults:
        raise InputError(faults)
    return dict(stated)


def check_schedule(name: str) -> None:
    """Raise UnknownNameError unless `name` is a schedule or leaves the choice open."""
    if name != AUTO and name not in schedules():
        raise UnknownNameError(kind="schedule", name=name, known=schedules(), field="/schedule")
