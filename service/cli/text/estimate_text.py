"""One layout's prediction as text."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from service.cli.text.plan_text import breakdown_table, layers_text
from service.cli.text.quantities import gibibytes, memory_bar, percent, seconds
from service.cli.text.tables import facts, remarks, table

Document = dict[str, Any]

MEMORY_TERMS = ("weights", "gradients", "optimizer", "activations", "transient", "fixed")
TIME_COLUMNS = {
    "forward_s": "forward",
    "backward_s": "backward",
    "tp_s": "of it tp",
    "cp_s": "cp",
    "ep_s": "ep",
    "sharded_weights_s": "weights",
    "end_s": "all done at",
    "sync_s": "sync",
    "optimizer_s": "optimizer",
    "finish_s": "finish",
}


def show_estimate(estimate: Document) -> RenderableType:
    """The answer first, then memory and time of each stage."""
    return Group(
        headline(estimate),
        remedies(estimate),
        facts(result_facts(estimate)),
        memory_table(estimate["stages"]),
        time_table(estimate["stages"]),
        breakdown_table(estimate["prediction"]),
        remarks("Warnings", estimate["warnings"], style="yellow"),
        remarks("Assumptions", estimate["assumptions"], style="dim"),
    )


def headline(estimate: Document) -> Text:
    """Whether the layout fits."""
    verdict = (
        ("fits", "bold green")
        if estimate["fits"]
        else (f"does not fit: {gibibytes(estimate['missing_bytes'])} missing on a chip", "bold red")
    )
    return Text.assemble(
        (estimate["model"], "bold"), " on ", (estimate["cluster"], "bold"), ": ", verdict
    )


def remedies(estimate: Document) -> RenderableType:
    """For a layout that does not fit, the smallest changes after which it would."""
    changes = estimate["changes"]
    if estimate["fits"]:
        return Group()
    if not changes:
        return Text("No single change would make it fit: plan again, or add chips.", style="red")
    title = "Would fit after" if changes[0]["fits"] else "Nothing tried would fit; nearest"
    return remarks(title, [remedy(change) for change in changes], style="red")


def remedy(change: Document) -> str:
    """One change and what follows from it."""
    if change["fits"]:
        return f"{change['change']}: step time {seconds(change['step_time_s'])}"
    return f"{change['change']}: still lacks {gibibytes(change['missing_bytes'])} on a chip"


def result_facts(estimate: Document) -> list[tuple[str, str]]:
    """The figures that people ask for first."""
    prediction = estimate["prediction"]
    return [
        ("step time", seconds(prediction["step_time_s"])),
        ("throughput", f"{prediction['tokens_per_s']:,.0f} tokens/s"),
        ("per chip", f"{prediction['tokens_per_s_per_chip']:,.1f} tokens/s"),
        ("MFU", percent(prediction["mfu"])),
    ]


def memory_table(stages: list[Document]) -> Table:
    """Every memory term of every stage; they sum to the peak."""
    rows = [
        (
            stage_name(stage),
            layers_text(stage),
            *(gibibytes(stage["memory"][term]) for term in MEMORY_TERMS),
            memory_bar(stage["memory"]["peak"], stage["memory"]["capacity"]),
        )
        for stage in stages
    ]
    columns = ("stage", "layers", *(f">{term}" for term in MEMORY_TERMS), "peak of usable")
    return table("Memory of one chip", columns, rows)


def time_table(stages: list[Document]) -> Table:
    """Every time term of every stage: of one micro-batch up to `weights`, then of the step."""
    rows = [
        (stage_name(stage), *(seconds(stage["time"][term]) for term in TIME_COLUMNS))
        for stage in stages
    ]
    return table("Time", ("stage", *(f">{name}" for name in TIME_COLUMNS.values())), rows)


def stage_name(stage: Document) -> str:
    """Pipeline, stage and pool."""
    return f"{stage['pipeline']}.{stage['stage']} {stage['pool']}"
