"""From options to a question, with every fault named by its option."""

import re
from typing import Any

from pydantic import ValidationError

from costmodel.errors import InputError
from haplan_client.schema.requests import Question
from service.violations import violations_of

OPTIONS = {
    "model": "MODEL",
    "cluster": "CLUSTER",
    "layout": "--layout",
    "target": "--target",
}
PART = re.compile(r"/(model|cluster|job|layout|target)((?:[ /].*)?)", re.DOTALL)


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
    document = {"model": model, "cluster": cluster, "job": job}
    try:
        return Question.model_validate(document)
    except ValidationError as error:
        raise InputError(violations_of(error.errors(), document)) from None


def option_name(field: str) -> str:
    """A field of a question as the command line calls it."""
    found = PART.fullmatch(field)
    if found is None:
        return field
    part, rest = found.groups()
    if part == "job":
        return "--" + rest.removeprefix("/").replace("_", "-")
    return f"{OPTIONS[part]} {rest.strip()}".rstrip()
