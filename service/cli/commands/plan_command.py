"""`haplan plan`: the fastest layout."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import typer

from haplan_client.schema.requests import Question
from service.cli import options, own_options
from service.cli.output import Document, Format, emit, progress
from service.cli.questions import question_of
from service.outcomes import ExitCode
from service.sources import Sources

if TYPE_CHECKING:
    from service.wishes import Asked

EXAMPLES = """
Examples:

    haplan plan llama3-70b hybrid-64 --global-batch-size 1024 --sequence-length 4096

    haplan plan ./config.json ./cluster.yaml --global-batch-size 512 --sequence-length 8192

    haplan plan llama3-70b hybrid-64 --global-batch-size 1024 --sequence-length 4096 --baselines

    haplan plan llama3-8b hybrid-64 --global-batch-size 256 --sequence-length 4096 --exclude ib:3
"""

QUESTION = (
    "model",
    "cluster",
    "global_batch_size",
    "sequence_length",
    "precision",
    "optimizer",
    "micro_batch_size",
    "schedule",
    "recompute",
    "target",
)
"""Options that make the question itself."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan", epilog=EXAMPLES)(plan_command)


def plan_command(
    model: options.Model,
    cluster: options.Cluster,
    global_batch_size: options.GlobalBatchSize,
    sequence_length: options.SequenceLength,
    precision: options.Precision = "bf16",
    optimizer: options.Optimizer = "adam",
    micro_batch_size: options.MicroBatchSize = "auto",
    schedule: options.Schedule = "auto",
    recompute: options.Recompute = "auto",
    target: options.Target = "launchable",
    time_limit: options.TimeLimit = 10.0,
    prove: options.Prove = 0.0,
    baselines: options.Baselines = False,
    layout: options.GivenLayout = None,
    pin: options.Pin = None,
    exclude: options.Exclude = None,
    objective: options.Objective = "time",
    tokens: options.Tokens = None,
    deadline: options.Deadline = None,
    pareto: options.Pareto = False,
    as_family: options.AsFamily = None,
    profiles: own_options.Profiles = None,
    software: own_options.Software = "auto",
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> int:
    """Find the parallel layout that trains MODEL fastest on CLUSTER.

    Exit code 3 says that no layout fits, 4 that the time limit came before any plan.
    """
    given: dict[str, Any] = dict(locals())
    from service.cli.text.front_text import show_front
    from service.cli.text.plan_text import show_plan

    sources = Sources(as_family=as_family, profiles=profiles, software=software)
    question = question_of(**{name: given[name] for name in QUESTION}, sources=sources)
    if pareto:
        document = fronted(question, asked_of(given), target, time_limit, sources)
        emit(document, show_front, output_format=output_format, path=output)
        return ExitCode.OK
    document = planned(question, asked_of(given), target, time_limit, sources)
    emit(document, show_plan, output_format=output_format, path=output)
    return ExitCode.INFEASIBLE if document["status"] == "infeasible" else ExitCode.OK


def asked_of(given: Mapping[str, Any]) -> "Asked":
    """The wishes that options say."""
    from service.wishes import Asked

    return Asked(
        baselines=given["baselines"],
        layout=given["layout"],
        pins=tuple(given["pin"] or ()),
        exclude=tuple(name for names in given["exclude"] or () for name in names.split(",")),
        objective=given["objective"],
        tokens=given["tokens"],
        deadline_hours=given["deadline"],
        prove_s=given["prove"],
    )


def planned(
    question: Question, asked: "Asked", target: str, time_limit_s: float, sources: Sources
) -> Document:
    """The plan; a person who watches sees how the search goes."""
    from service.cli.text.plan_text import progress_text
    from service.usecases import plan_question

    with progress(f"planning {question.model} on {question.cluster}") as say:
        say("getting ready (slow once)")
        return plan_question(
            question,
            target=target,
            time_limit_s=time_limit_s,
            sources=sources,
            asked=asked,
            progress=lambda elapsed_s, best_s: say(progress_text(elapsed_s, time_limit_s, best_s)),
        )


def fronted(
    question: Question, asked: "Asked", target: str, time_limit_s: float, sources: Sources
) -> Document:
    """The front; it takes as long as the limit says."""
    from service.usecases import front_question

    with progress(f"planning {question.model} on parts of {question.cluster}"):
        return front_question(
            question, target=target, time_limit_s=time_limit_s, sources=sources, asked=asked
        )
