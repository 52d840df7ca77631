"""Reads layouts: a document as in a plan, a file of one, or the inline form."""

import re
from collections.abc import Mapping
from pathlib import Path

from costmodel.errors import InputError, Violation, did_you_mean, suggest
from costmodel.layout.rules import violations
from costmodel.layout.uniform import Parsed, Uniform, uniform_layout
from costmodel.layout.values import Layout, Pipeline, Schedule, Stage, StageOption
from costmodel.problem import Problem
from costmodel.safe_document import load_document
from costmodel.wire.read import validate
from haplan_client.schema.layout import (
    InlineLayout,
    LayoutDocument,
    PipelineDocument,
    StageDocument,
)

MAX_STAGES = 2048
"""Stages of all pipelines that are written out."""
PLAN_SCHEMA = "haplan.plan/"
SWITCHES = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
WORDS = ("recompute", "offload", "schedule", "pools", "outer", "layers", "layout")


def load_layout(problem: Problem, source: str | Path | Mapping[str, object]) -> Layout:
    """The legal layout of a document, of a file, or of the inline form ``tp=8,pp=4,dp=2``.

    Raises InputError with every violated rule.
    """
    parsed = parsed_layout(problem, source)
    broken = parsed.broken + violations(problem, parsed.layout, placed=parsed.placed)
    if broken:
        raise InputError(broken)
    return parsed.layout


def parsed_layout(problem: Problem, source: str | Path | Mapping[str, object]) -> Parsed:
    """The layout, legal or not, and the rules that its inline form breaks.

    Raises InputError when no layout can be made of the source.
    """
    if isinstance(source, Mapping):
        return Parsed(layout=layout_of(problem, source))
    if isinstance(source, str) and is_inline(source):
        return uniform_layout(problem, read_inline(source))
    return Parsed(layout=layout_of(problem, load_document(Path(source))))


def is_inline(text: str) -> bool:
    """Whether a text is the inline form and not a path."""
    return "=" in text and "/" not in text.split("=", 1)[0] and "\n" not in text


def layout_of(problem: Problem, document: Mapping[str, object]) -> Layout:
    """The layout of a layout document, or of a plan that holds one."""
    if str(document.get("schema", "")).startswith(PLAN_SCHEMA):
        document = {key: document[key] for key in ("pipelines", "schedule") if key in document}
    checked = validate(LayoutDocument, document)
    stages = sum(len(pipeline.stages) for pipeline in checked.pipelines)
    if stages > MAX_STAGES:
        rule, fix = f"must have at most {MAX_STAGES} stages", "use `count` for equal pipelines"
        raise InputError.of(field="/pipelines", value=stages, rule=rule, fix=fix)
    return Layout(
        pipelines=tuple(_pipeline(problem, p) for p in checked.pipelines),
        schedule=Schedule(
            kind=checked.schedule.kind, virtual_stages=checked.schedule.virtual_stages
        ),
    )


def _pipeline(problem: Problem, document: PipelineDocument) -> Pipeline:
    last = len(document.stages) - 1
    unplaced = all(stage.mtp is None for stage in document.stages)
    depth = len(problem.model.mtp) if unplaced else 0
    return Pipeline(
        count=document.count,
        microbatches=document.microbatches,
        stages=tuple(
            Stage(
                option=_option(stage),
                chunks=tuple((chunk[0], chunk[1]) for chunk in stage.chunks),
                embedding=i == 0 if stage.embedding is None else stage.embedding,
                head=i == last if stage.head is None else stage.head,
                mtp=stage.mtp or (depth if i == last else 0),
            )
            for i, stage in enumerate(document.stages)
        ),
    )


def _option(stage: StageDocument) -> StageOption:
    parallel = stage.sequence_parallel
    return StageOption(
        pool=stage.pool,
        tp=stage.tp,
        cp=stage.cp,
        ep=stage.ep,
        etp=stage.etp,
        replicas=stage.replicas,
        micro_batch_size=stage.micro_batch_size,
        sequence_parallel=stage.tp > 1 if parallel is None else parallel,
        zero=stage.zero,
        recompute=stage.recompute.mode,
        offload=stage.offload,
    )


def read_inline(text: str) -> Uniform:
    """The fields of the inline form. Raises InputError with every violation."""
    fields, broken = _fields(text)
    try:
        checked = validate(InlineLayout, fields)
    except InputError as error:
        raise InputError([*broken, *error.violations]) from None
    if broken:
        raise InputError(broken)
    return Uniform(**{name: getattr(checked, name) for name in InlineLayout.model_fields})


def _fields(text: str) -> tuple[dict[str, object], list[Violation]]:
    """Keys and values; ``layout=`` takes the rest of the text, commas and all."""
    text, marker, notation = text.partition("layout=")
    fields: dict[str, object] = {"layout": notation.strip("'\" ")} if marker else {}
    broken: list[Violation] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = (x.strip() for x in part.partition("="))
        if not equals or key in fields or key not in InlineLayout.model_fields:
            broken.append(_bad_part(part, key, repeated=key in fields))
            continue
        fields[key] = _value(key, value)
    return fields, broken


def _value(key: str, value: str) -> object:
    if key == "sp":
        return SWITCHES.get(value.lower(), value)
    is_number = key not in WORDS and re.fullmatch(r"[-+]?[0-9]{1,300}", value)
    return int(value) if is_number else value


def _bad_part(part: str, key: str, *, repeated: bool) -> Violation:
    known = list(InlineLayout.model_fields)
    rule, fix = "must be one of the fields of a layout", did_you_mean(suggest(key, known), known)
    if repeated:
        rule, fix = "must be given once", "remove one of the two"
    elif "=" not in part:
        rule, fix = "must be written as field=value", "write it as in tp=8,pp=4,dp=2"
    return Violation(field=f"/{key}", value=part, rule=rule, fix=fix)
