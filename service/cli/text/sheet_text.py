"""The sheet of a chip, and those of a cluster, as text: every number and where it comes from."""

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from service.cli.text.catalogue_text import cluster_table
from service.cli.text.tables import facts, remarks, table

Document = dict[str, Any]


def show_sheet(sheet: Document) -> RenderableType:
    """One sheet; a number in brackets leads to its source."""
    sources = list(dict.fromkeys(n["source"] for n in sheet["numbers"] if n["source"]))
    columns = ("=number", ">value", "=confidence", "source and note")
    rows = [number_cells(number, sources) for number in sheet["numbers"]]
    title = f"{sheet['name']}: {sheet['title']} (compiled {sheet['compiled']})"
    numbered = [(f"[{k}]", source) for k, source in enumerate(sources, 1)]
    return Group(table(title, columns, rows), facts(numbered), Text())


def number_cells(number: Document, sources: Sequence[str]) -> tuple[str, str, str, str]:
    """One number as it is published; its confidence says nothing where there is no number."""
    known = number["state"] == "known"
    value = f"{number['value']:,.10g} {number['unit']}" if known else number["state"]
    source = f"[{sources.index(number['source']) + 1}]" if number["source"] else ""
    stated = f"stated: {number['stated']}" if number["stated"] else ""
    words = (source, number["record"], stated, number["note"])
    cited = " ".join(word for word in words if word)
    return number["name"], value, number["confidence"] if known or source else "", cited


def show_cluster_sheets(document: Document) -> RenderableType:
    """A cluster, then the sheets of its chips and links, and what they lack."""
    own = [f"{place}: {value}" for place, value in document["own_numbers"].items()]
    sheets = [*document["chip_sheets"], *document["link_sheets"]]
    return Group(
        cluster_table(document),
        *(show_sheet(sheet) for sheet in sheets),
        remarks("Numbers of the cluster's own, in place of the sheets'", own, style="bold"),
        remarks("Assumed where the sheets have no number", document["assumptions"], style="dim"),
    )
