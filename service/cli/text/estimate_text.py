"""One layout's prediction as text."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from service.cli.text.plan_text import breakdown_table, step_text
from service.cli.text.quantities import (
    gibibyte_number,
    gibibytes,
    memory_text,
    percent,
    seconds,
)
from service.cli.text.runs import (
    LONG,
    RUN_NOTE,
    Run,
    is_worth_a_word,
    layers_text,
    runs_of,
    split_of,
)
from service.cli.text.tables import facts, remarks, table

Document = dict[str, Any]

Labelled = tuple[str, Run]
"""A run with its pipeline and stages."""

HEAD = ("=stage", "pool")
MEMORY_COLUMNS = {
    "weights": "weights",
    "gradients": "grads",
    "optimizer": "optim",
    "activations": "activ",
    "transient": "trans",
    "fixed": "fixed",
}
ALWAYS = ("forward_s", "backward_s")
MICROBATCH_COLUMNS = {
    "forward_s": "forward",
    "backward_s": "backward",
    "tp_s": "of it tp",
    "cp_s": "of it cp",
    "ep_s": "of it ep",
    "sharded_weights_s": "weights",
}
STEP_COLUMNS = {
    "end_s": "passes end",
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
        tables(estimate),
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
        ("step time", step_text(prediction)),
        ("throughput", f"{prediction['tokens_per_s']:,.0f} tokens/s"),
        ("per chip", f"{prediction['tokens_per_s_per_chip']:,.1f} tokens/s"),
        ("MFU", percent(prediction["mfu"])),
    ]


def tables(estimate: Document) -> RenderableType:
    """Memory, then time, of every run of stages."""
    rows = labelled_runs(estimate["pipelines"], estimate["stages"])
    alone = all(len(run.stages) == 1 for _, run in rows)
    return Group(
        Group() if alone else Text(RUN_NOTE, style="dim"),
        layer_table(rows),
        memory_table(rows),
        microbatch_table(rows),
        step_table(rows),
    )


def labelled_runs(pipelines: list[Document], stages: list[Document]) -> list[Labelled]:
    """The runs of all pipelines; the stages with their terms are listed pipeline by pipeline."""
    rest, found = iter(stages), list[Labelled]()
    for number, pipeline in enumerate(pipelines):
        own = [next(rest) for _ in pipeline["stages"]]
        runs = runs_of(own, collapse=len(stages) > LONG)
        found += [(f"{number}.{run.label}", run) for run in runs]
    return found


def memory_table(rows: list[Labelled]) -> Table:
    """Every memory term; of one stage they sum to the peak."""
    cells = [
        (
            *head_cells(label, run),
            *(gibibyte_number(run.largest("memory", term)) for term in MEMORY_COLUMNS),
            memory_text(run.largest("memory", "peak"), run.stages[0]["memory"]["capacity"]),
        )
        for label, run in rows
    ]
    columns = (*HEAD, *(f">{name}" for name in MEMORY_COLUMNS.values()), ">peak/usable")
    return table("Memory of one chip, in GiB", columns, cells)


def microbatch_table(rows: list[Labelled]) -> Table:
    """The times of one micro-batch; what takes none anywhere is left out."""
    shown = {
        term: name
        for term, name in MICROBATCH_COLUMNS.items()
        if term in ALWAYS or any(run.largest("time", term) for _, run in rows)
    }
    return time_table("Time of one micro-batch", shown, rows)


def step_table(rows: list[Labelled]) -> Table:
    """When the passes of the step are done, and what follows."""
    return time_table("Time of the step", STEP_COLUMNS, rows)


def time_table(title: str, columns: dict[str, str], rows: list[Labelled]) -> Table:
    """Some terms of the time."""
    cells = [
        (*head_cells(label, run), *(seconds(run.largest("time", term)) for term in columns))
        for label, run in rows
    ]
    return table(title, (*HEAD, *(f">{name}" for name in columns.values())), cells)


def layer_table(rows: list[Labelled]) -> Table:
    """Which layers each run holds, and how it is split."""
    cells = [
        (*head_cells(label, run), layers_text(run.stages), split_text(run.stages[0]))
        for label, run in rows
    ]
    return table("Stages", (*HEAD, "layers", "split"), cells)


def split_text(stage: Document) -> str:
    """How a stage is split."""
    return " ".join(w for field, w in split_of(stage).items() if is_worth_a_word(field, w))


def head_cells(label: str, run: Run) -> tuple[str, str]:
    """Pipeline and stages, and the pool."""
    return label, run.stages[0]["pool"]
