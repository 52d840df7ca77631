"""From options to a question, with every fault named by its option."""

from typing import Any

from pydantic import ValidationError

from costmodel.errors import InputError
from haplan_client.schema.requests import Question
from service.violations import violations_of


def question_of(
    model: str,
    cluster: str,
    *,
    global_batch_size: int,
    sequence_length: int,
    precision: str,
    optimizer: str,
    micro_batch_size: str,
    schedule: str,
    recompute: str,
) -> Question:
    """The question that a command line asks."""
    job: dict[str, Any] = {
        "global_batch_size": global_batch_size,
        "sequence_length": sequence_length,
        "precision": precision,
        "optimizer": optimizer,
        "micro_batch_size": int(micro_batch_size)
        if micro_batch_size.lstrip("-").isdecimal()
        else micro_batch_size,
        "schedule": schedule,
        "recompute": recompute,
    }
    try:
        return Question.model_validate({"model": model, "cluster": cluster, "job": job})
    except ValidationError as error:
        raise InputError(violations_of(error.errors())) from None


def option_name(field: str) -> str:
    """A field of a question as the command line calls it."""
    head, _, rest = field.removeprefix("/").partition("/")
    if head == "job":
        return "--" + rest.replace("_", "-")
    names = {"model": "MODEL", "cluster": "CLUSTER", "layout": "--layout"}
    word, space, tail = head.partition(" ")
    if not field.startswith("/") or word not in names:
        return field
    return names[word] + space + tail + (f" /{rest}" if rest else "")
