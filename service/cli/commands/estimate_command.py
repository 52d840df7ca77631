"""`haplan estimate`: what one given layout costs."""

from typing import Annotated

import typer

from service.cli import options, own_options
from service.cli.output import Format, emit
from service.cli.questions import question_of
from service.sources import Sources

EXAMPLES = """
Examples:

    haplan estimate llama3-70b hybrid-64 --global-batch-size 1024 --sequence-length 4096 --layout tp=8,pp=4,dp=2

    haplan estimate llama3-70b hybrid-64 --global-batch-size 1024 --sequence-length 4096 --layout plan.json
"""  # noqa: E501  a command stays on its line


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("estimate", epilog=EXAMPLES)(estimate_command)


def estimate_command(
    model: options.Model,
    cluster: options.Cluster,
    layout: Annotated[
        str,
        typer.Option(
            metavar="L", help="A layout or plan file, or inline: tp=8,pp=4,dp=2,mbs=1,zero=1."
        ),
    ],
    global_batch_size: options.GlobalBatchSize,
    sequence_length: options.SequenceLength,
    precision: options.Precision = "bf16",
    optimizer: options.Optimizer = "adam",
    micro_batch_size: options.MicroBatchSize = "auto",
    schedule: options.Schedule = "auto",
    recompute: options.Recompute = "auto",
    as_family: options.AsFamily = None,
    profiles: own_options.Profiles = None,
    software: own_options.Software = "auto",
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> None:
    """Predict step time and memory of one layout, term by term."""
    from service.cli.text.estimate_text import show_estimate
    from service.usecases import estimate_question

    sources = Sources(as_family=as_family, profiles=profiles, software=software)
    question = question_of(
        model,
        cluster,
        global_batch_size=global_batch_size,
        sequence_length=sequence_length,
        precision=precision,
        optimizer=optimizer,
        micro_batch_size=micro_batch_size,
        schedule=schedule,
        recompute=recompute,
        sources=sources,
    )
    found = estimate_question(question, layout=layout, sources=sources)
    emit(found, show_estimate, output_format=output_format, path=output)
