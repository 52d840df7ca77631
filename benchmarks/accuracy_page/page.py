"""Fills the template of the page."""

import json
import re
from pathlib import Path
from typing import Any

from benchmarks.accuracy_page import constant_tables, memory_tables, mixed_tables, targets, worst
from benchmarks.accuracy_page import time_tables as times
from benchmarks.accuracy_page.ablation_table import ablation
from benchmarks.accuracy_page.cells import table
from benchmarks.accuracy_page.plots import plots
from benchmarks.accuracy_page.time_tables import Findings

HERE = Path(__file__).parent
PLACE = re.compile(r"\{\{(\w+)\}\}")


def write_page(findings: Findings, removed: Findings | None, target: Path) -> None:
    """Writes the page and, in a folder of its name, the pictures.

    removed: findings of the ablation, None where it was not run.
    """
    pictures = plots(findings, target.with_suffix(""))
    links = [
        f"![{path.stem}: predicted against measured]({path.parent.name}/{path.name})"
        for path in pictures
    ]
    earlier = json.loads((HERE / "earlier_model.json").read_text(encoding="utf-8"))
    fragments = {**_fragments(findings, earlier), "plots": "\n".join(links)}
    fragments["ablation"] = ablation(removed)
    target.write_text(filled(fragments), encoding="utf-8")


def filled(fragments: dict[str, str]) -> str:
    """The template with every place filled. Raises KeyError for a place without a fragment."""
    template = (HERE / "template.md").read_text(encoding="utf-8")
    return PLACE.sub(lambda match: fragments[match.group(1)], template)


def _fragments(findings: Findings, earlier: dict[str, Any]) -> dict[str, str]:
    return {
        "targets": targets.compared(findings, earlier),
        "targets_by_stack": targets.by_stack(findings, earlier),
        "earlier_rows": earlier["rows"],
        "earlier_note": earlier["differences"],
        "time": times.whole(findings),
        "time_by_stack": times.by_stack(findings),
        "choice": times.choice(findings),
        "intervals": times.intervals(findings),
        "korthikanti": mixed_tables.source(findings, "Korthikanti"),
        "sc21": mixed_tables.source(findings, "SC21"),
        "mixed": mixed_tables.mixed(findings),
        "worst": worst.worst(findings),
        "memory": memory_tables.whole(findings),
        "memory_by_stack": memory_tables.by_stack(findings),
        "memory_constants": memory_tables.constants(findings),
        "constants": constant_tables.pooled(findings),
        "constants_of_stacks": constant_tables.stacks(findings),
        **_counts(findings["as shipped"]),
    }


def _counts(shipped: Findings) -> dict[str, str]:
    reasons = [[str(count), reason] for reason, count in shipped["skipped"].items()]
    lacking = sum(bool(row["short"]) for row in shipped["facts"])
    return {
        "scored": str(shipped["document"]["scored"]),
        "rows": str(shipped["document"]["rows"]),
        "quality_c": str(shipped["quality_c"]),
        "short": str(lacking),
        "short_by_stack": memory_tables.short({"as shipped": shipped}),
        "skipped": table(["rows", "reason"], reasons) if reasons else "None.",
    }
