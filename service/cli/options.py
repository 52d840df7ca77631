"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli.output import Format

MAX_TIME_LIMIT_S = 7 * 86_400.0
"""A week: a plan that takes longer is a stuck plan."""

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A bundled name, a Hugging Face config.json or its folder, or a graph file.",
    ),
]
Cluster = Annotated[str, typer.Argument(metavar="CLUSTER", help="A bundled name or a YAML file.")]
OutputFormat = Annotated[
    Format,
    typer.Option("--format", help="What stdout carries: tables, or the JSON document alone."),
]
OutputPath = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Also save the JSON document.")
]
# Numbers of the job are texts here: the job's rules check them, so that a wrong one is named along
# with all other faults of the question.
GlobalBatchSize = Annotated[
    str, typer.Option("--global-batch-size", metavar="N", help="Sequences per optimizer step.")
]
SequenceLength = Annotated[
    str, typer.Option("--sequence-length", metavar="N", help="Tokens per sequence.")
]
Precision = Annotated[
    str, typer.Option("--precision", help="bf16, fp16, fp8, mxfp8, nvfp4 or fp32.")
]
Optimizer = Annotated[str, typer.Option("--optimizer", help="adam, adamw, sgd-momentum or sgd.")]
MicroBatchSize = Annotated[
    str, typer.Option("--micro-batch-size", metavar="auto|N", help="Sequences per micro-batch.")
]
Schedule = Annotated[str, typer.Option("--schedule", help="auto or a schedule, such as 1f1b.")]
Recompute = Annotated[
    str, typer.Option("--recompute", help="auto, none, selective or full, for every stage.")
]
AsFamily = Annotated[
    str | None,
    typer.Option("--as-family", metavar="F", help="Read an unknown model type as this family."),
]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        help="What has to execute the plan: launchable (the best of the frameworks), any, runner, "
        "megatron, flagscale, torchtitan, deepspeed or mindspeed, each also as name@version.",
    ),
]
Baselines = Annotated[
    bool, typer.Option("--baselines", help="Compare with every simpler planner that is known.")
]
GivenLayout = Annotated[
    str | None,
    typer.Option(
        "--layout", metavar="L", help="A layout of yours to compare with: a file, or inline."
    ),
]
Pin = Annotated[
    list[str] | None,
    typer.Option(
        "--pin",
        metavar="NAME=VALUE",
        help="Fix tp, cp, ep, etp, replicas, micro-batch-size, zero, recompute or stages (one or "
        "more values), pool-order, equal-tp, templates, memory-margin or reserve; repeatable.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", metavar="NODES", help="Nodes out of use: names or pool:index; repeatable."
    ),
]
Objective = Annotated[
    str, typer.Option("--objective", help="time, cost (per token) or chips (for a deadline).")
]
Tokens = Annotated[
    float | None, typer.Option("--tokens", metavar="N", min=1, help="Tokens to train on.")
]
Deadline = Annotated[
    float | None,
    typer.Option("--deadline", metavar="HOURS", min=1e-6, help="Hours that training may take."),
]
Pareto = Annotated[
    bool, typer.Option("--pareto", help="Show the front over step time, cost and chips instead.")
]
Prove = Annotated[
    float,
    typer.Option(
        "--prove",
        metavar="S",
        min=0.0,
        max=MAX_TIME_LIMIT_S,
        help="Seconds to go on proving a bound when the search is over.",
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit", metavar="S", min=0.01, max=MAX_TIME_LIMIT_S, help="Seconds until the plan."
    ),
]
