"""From options to a question, with every fault named by its option."""

import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

from costmodel.errors import InputError, Violation
from costmodel.wire.read import validate
from haplan_client.schema.requests import Question
from service.sources import Sources

OPTIONS = {
    "model": "MODEL",
    "cluster": "CLUSTER",
    "layout": "--layout",
    "target": "--target",
    "pins": "--pin",
    "reserve": "--pin reserve",
    "memory_margin": "--pin memory-margin",
    "exclude": "--exclude",
    "objective": "--objective",
    "as_family": "--as-family",
}
QUOTES = " without quotes"
"""Advice for those who write a document."""
PART = re.compile(rf"/(job|{'|'.join(OPTIONS)})((?:[ /].*)?)", re.DOTALL)


def question_of(
    model: str,
    cluster: str,
    *,
    global_batch_size: str,
    sequence_length: str,
    precision: str,
    optimizer: str,
    micro_batch_size: str,
    schedule: str,
    recompute: str,
    sources: Sources,
    target: str | None = None,
) -> Question:
    """The question that a command line asks; `sources` and `target` are checked when it is wrong.

    Raises InputError with every violation.
    """
    job: dict[str, Any] = {
        "global_batch_size": number_or_word(global_batch_size),
        "sequence_length": number_or_word(sequence_length),
        "precision": precision,
        "optimizer": optimizer,
        "micro_batch_size": number_or_word(micro_batch_size),
        "schedule": schedule,
        "recompute": recompute,
    }
    document: dict[str, Any] = {"model": model, "cluster": cluster, "job": job}
    own = read_own(document, sources)
    try:
        question = validate(Question, document)
    except InputError as error:
        from service.inputs import other_faults

        fields = [violation.field for violation in error.violations]
        others = other_faults(document, fields, sources, target=target)
        unquoted = [replace(v, fix=v.fix.replace(QUOTES, "")) for v in error.violations]
        raise InputError([*unquoted, *others, *own]) from None
    if own:
        from service.inputs import other_faults

        raise InputError([*own, *other_faults(document, (), sources, target=target)])
    return question


def read_own(document: dict[str, Any], sources: Sources) -> list[Violation]:
    """Put a user's own profiles into the document of a question; the answer is what is wrong."""
    from service.profiles import sheet_documents, software_named, with_profiles

    faults: list[Violation] = []
    try:
        document["job"]["software"] = software_named(sources.software)
    except InputError as error:
        faults += error.violations
    try:
        sheets = sheet_documents(sources.profiles) if sources.profiles else {}
    except InputError as error:
        return [*faults, *error.violations]
    with suppress(InputError):  # a cluster that cannot be read is a fault of the question
        if sheets:
            document["cluster"] = with_profiles(document["cluster"], sheets)
    return faults


def number_or_word(text: str) -> int | str:
    """A whole number where the text is one; longer ones than any limit stay text."""
    return int(text) if re.fullmatch(r"[-+]?[0-9]{1,300}", text) else text


def option_name(field: str) -> str:
    """A field of a question as the command line calls it."""
    found = PART.fullmatch(field)
    if found is None:
        return field
    part, rest = found.groups()
    if part == "job":
        return "--" + rest.removeprefix("/").replace("_", "-")
    return f"{OPTIONS[part]} {rest.strip()}".rstrip()
