"""The pipelines of a plan: a table for each kind, or one table of all when there are many."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from service.cli.text.quantities import memory_text, seconds_pair
from service.cli.text.runs import (
    LONG,
    RUN_NOTE,
    Run,
    is_worth_a_word,
    kind_of,
    layers_text,
    runs_of,
    shared_split,
    split_of,
)
from service.cli.text.tables import table

Document = dict[str, Any]

MANY = 4
"""More kinds of pipelines than this are listed, one a row."""
Kind = list[tuple[int, Document]]
"""Neighbouring pipelines with the same stages, each with its number."""


def pipelines_text(pipelines: Sequence[Document]) -> RenderableType:
    """All pipelines."""
    kinds = kinds_of(pipelines)
    if len(kinds) > MANY:
        return overview(kinds)
    collapse = sum(len(kind[0][1]["stages"]) for kind in kinds) > LONG
    return Group(*(kind_text(kind, collapse=collapse) for kind in kinds))


def kinds_of(pipelines: Sequence[Document]) -> list[Kind]:
    """Pipelines grouped by what their stages are."""

    def key(pair: tuple[int, Document]) -> list[tuple[object, ...]]:
        return [(*kind_of(stage), stage["chunks"]) for stage in pair[1]["stages"]]

    return [list(group) for _, group in groupby(enumerate(pipelines), key=key)]


def kind_text(kind: Kind, *, collapse: bool) -> RenderableType:
    """One kind of pipeline: what it is, then a row for each run of stages."""
    stages = kind[0][1]["stages"]
    shared = shared_split(stages)
    said = [word for field, word in shared.items() if is_worth_a_word(field, word)]
    runs = runs_of(stages, collapse=collapse)
    lines = [f"every stage: {' '.join(said)}"] if said and len(stages) > 1 else []
    lines += [RUN_NOTE] if len(runs) < len(stages) else []
    hidden = set(shared) if len(stages) > 1 else set[str]()
    return Group(
        Text(title_of(kind), style="bold"),
        *(Text(f"  {line}", style="dim") for line in lines),
        run_table(runs, hidden),
    )


def title_of(kind: Kind) -> str:
    """Which pipelines, how often, and how many micro-batches each runs."""
    first, last = kind[0][0], kind[-1][0]
    name = f"Pipeline {first}" if first == last else f"Pipelines {first}-{last}"
    counts = _listed(pipeline["count"] for _, pipeline in kind)
    batches = _listed(pipeline["microbatches"] for _, pipeline in kind)
    if counts == "1":
        return f"{name}: 1 copy, {batches} micro-batches"
    return f"{name}: {counts} copies, {batches} micro-batches each"


def _listed(values: Iterable[int]) -> str:
    """The numbers: once if they are all the same, the range if they are many."""
    found = list(values)
    if len(set(found)) == 1:
        return str(found[0])
    if len(found) > MANY:
        return f"{min(found)} to {max(found)}"
    return ", ".join(str(value) for value in found)


def run_table(runs: Sequence[Run], hidden: set[str]) -> RenderableType:
    """A row for each run; what all stages share is left out."""
    rows = [run_cells(run, hidden) for run in runs]
    shown = [name for name in rows[0] if name != "split" or any(row[name] for row in rows)]
    return table("", shown, [[row[name] for name in shown] for row in rows])


def run_cells(run: Run, hidden: set[str]) -> dict[str, RenderableType]:
    """One run, by column."""
    words = [w for field, w in split_of(run.stages[0]).items() if field not in hidden]
    capacity = run.stages[0]["memory"]["capacity"]
    return {
        "=stage": run.label,
        "pool": run.stages[0]["pool"],
        "layers": layers_text(run.stages),
        "split": " ".join(words),
        ">fwd/bwd": seconds_pair(run.largest("forward_s"), run.largest("backward_s")),
        ">memory GiB": memory_text(run.largest("memory", "peak"), capacity),
    }


def overview(kinds: Sequence[Kind]) -> RenderableType:
    """A row for each kind of pipeline."""
    rows = [
        (
            str(kind[0][0]) if len(kind) == 1 else f"{kind[0][0]}-{kind[-1][0]}",
            _listed(pipeline["count"] for _, pipeline in kind),
            _listed(pipeline["microbatches"] for _, pipeline in kind),
            str(len(kind[0][1]["stages"])),
            route_text(kind[0][1]["stages"]),
            fullest_text(kind[0][1]["stages"]),
        )
        for kind in kinds
    ]
    columns = ("=pipeline", "copies", "micro-batches", ">stages", "stages by pool", ">fullest GiB")
    note = Text("  --format json has every stage of every pipeline", style="dim")
    return Group(Text("Pipelines", style="bold"), note, table("", columns, rows))


def route_text(stages: Sequence[Document]) -> str:
    """The pools that a micro-batch passes, with the number of stages in each."""
    groups = [(pool, len(list(group))) for pool, group in groupby(s["pool"] for s in stages)]
    return ", ".join(pool if number == 1 else f"{pool} x{number}" for pool, number in groups)


def fullest_text(stages: Sequence[Document]) -> Text:
    """The stage with least room."""
    memories = [stage["memory"] for stage in stages]
    fullest = max(memories, key=lambda memory: memory["peak"] / max(memory["capacity"], 1.0))
    return memory_text(fullest["peak"], fullest["capacity"])
