"""A simulated pipeline as text: what each stage does with the step."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from service.cli.text.quantities import gibibytes, percent, seconds
from service.cli.text.tables import table

Document = dict[str, Any]

COLUMNS = (
    ">stage",
    "pool",
    ">layers",
    ">compute",
    ">traffic",
    ">idle",
    ">sync+update",
    ">busy",
    ">peak",
)
LEGEND = (
    "traffic: communication that passes wait for; idle: before the last pass ends, and for "
    "stages that share layers; sync+update: gradient sums and the optimizer"
)
TRAFFIC = ("tp_s", "cp_s", "ep_s", "weights_s")


def show_simulation(document: Document) -> RenderableType:
    """The step, the stages, and where the trace is."""
    rows = [stage_cells(stage) for stage in document["stages"]]
    notes = [LEGEND]
    if "trace" in document:
        trace = document["trace"]
        notes.append(f"trace: {trace['path']}, {trace['bytes'] / 1e6:.1f} MB (ui.perfetto.dev)")
    return Group(
        Text.assemble(("step time  ", "bold"), seconds(document["step_time_s"])),
        table(title_of(document), COLUMNS, rows),
        *(Text(f"  {note}", style="dim") for note in notes),
    )


def title_of(document: Document) -> str:
    """Which pipeline, and what it runs."""
    return (
        f"Pipeline {document['pipeline']}: {document['schedule']['kind']}, "
        f"{document['microbatches']} micro-batches"
    )


def stage_cells(stage: Document) -> tuple[str, ...]:
    """One stage."""
    return (
        str(stage["stage"]),
        stage["pool"],
        str(stage["layers"]),
        seconds(stage["compute_s"]),
        seconds(sum(stage[name] for name in TRAFFIC)),
        seconds(stage["idle_s"] + stage["wait_s"]),
        seconds(stage["sync_s"] + stage["optimizer_s"]),
        percent(stage["busy"]),
        gibibytes(stage["peak_bytes"]),
    )
