"""A plan as text: the answer first, then pipelines, time, and what it was compared with."""

from collections import Counter
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from service.cli.text.pipeline_text import pipelines_text
from service.cli.text.quantities import bar, gibibytes, percent, seconds
from service.cli.text.tables import facts, remarks, some, table

Document = dict[str, Any]

STATUS_STYLES = {"optimal": "bold green", "feasible": "green", "infeasible": "bold red"}


def show_plan(plan: Document) -> RenderableType:
    """The whole plan."""
    notes = (
        remarks("Warnings", plan.get("warnings", []), style="yellow"),
        remarks("Assumptions", plan.get("assumptions", []), style="dim"),
    )
    if plan["status"] == "infeasible":
        return Group(headline(plan), shortfall_text(plan.get("shortfall")), *notes)
    return Group(
        headline(plan),
        pipelines_text(plan["pipelines"]),
        breakdown_table(plan["prediction"]),
        comparison_table(plan),
        *notes,
    )


def plan_in_short(plan: Document) -> RenderableType:
    """Three lines: what was asked, the step time and its bound; what is missing if nothing fits."""
    if plan["status"] == "infeasible":
        return show_plan(plan)
    shown = [fact for fact in result_facts(plan) if fact[0] in ("step time", "proven bound")]
    return Group(title_text(plan), facts(shown), Text())


def headline(plan: Document) -> RenderableType:
    """What was asked and what came out."""
    title = title_text(plan)
    if plan["status"] == "infeasible":
        return title
    identity = Text.assemble(("plan ", "dim"), plan["id"])
    return Group(title, facts(result_facts(plan)), identity, Text())


def title_text(plan: Document) -> Text:
    """What was asked, and whether there is an answer."""
    job = plan["job"]
    return Text.assemble(
        (plan["model"]["name"], "bold"),
        " on ",
        (plan["cluster"]["name"], "bold"),
        f", batch {job['global_batch_size']:,} x {job['sequence_length']:,} tokens: ",
        (plan["status"], STATUS_STYLES[plan["status"]]),
    )


def shortfall_text(shortfall: Document | None) -> RenderableType:
    """Why nothing fits, and what would help."""
    if shortfall is None:
        return Group()
    pairs = [("binding constraint", shortfall["constraint"])]
    if shortfall["missing_bytes"]:
        pairs.append(("nearest miss", f"lacks {gibibytes(shortfall['missing_bytes'])} a chip"))
    if shortfall["pool"]:
        pairs.append(("in pool", shortfall["pool"]))
    return Group(facts(pairs), remarks("Would fit with", shortfall["changes"], style="green"))


def result_facts(plan: Document) -> list[tuple[str, str]]:
    """The figures that people ask for first."""
    prediction, bound = plan["prediction"], plan["bound"]
    return [
        ("target", plan["target"]),
        ("step time", step_text(prediction)),
        ("throughput", f"{prediction['tokens_per_s']:,.0f} tokens/s"),
        (
            "per used chip",
            ", ".join(
                (
                    f"{prediction['tokens_per_s_per_chip']:,.1f} tokens/s",
                    f"{prediction['tflops_per_chip']:.1f} TFLOP/s",
                    f"MFU {percent(prediction['mfu'])}",
                )
            ),
        ),
        (
            "proven bound",
            f"{seconds(bound['step_time_s'])}; gap {percent(bound['gap'])}",
        ),
        ("chips used", chips_text(plan)),
        ("idle", idle_text(plan.get("idle", {}))),
        ("search", search_text(plan["search"])),
    ]


def step_text(prediction: Document) -> str:
    """The step time and between which times nine of ten measured ones lie."""
    text, interval = seconds(prediction["step_time_s"]), prediction.get("interval_s")
    if not interval:
        return text
    return f"{text}  (90 %: {seconds(interval[0])} to {seconds(interval[1])})"


def chips_text(plan: Document) -> str:
    """How many chips of each kind are used of how many, a kind a line."""
    cluster, idle = plan["cluster"], plan.get("idle", {})
    unused: Counter[str] = Counter()
    for pool in cluster["document"]["pools"]:
        unused[pool["chip"]] += idle.get(pool["name"], 0)
    kinds = cluster["chips"].items()
    lines = [f"{number - unused[name]:,} of {number:,} x {name}" for name, number in kinds]
    return some(lines, separator="\n")


def idle_text(idle: dict[str, int]) -> str:
    """Chips that the plan leaves unused."""
    return some([f"{number:,} in {pool}" for pool, number in idle.items() if number]) or "none"


def breakdown_table(prediction: Document) -> Table:
    """Where the step time goes, seen from the stage that finishes last."""
    total = prediction["step_time_s"]
    rows = [
        (term, seconds(value), percent(value / total), bar(value / total, width=30))
        for term, value in prediction["breakdown"].items()
        if value > 1e-9 * total
    ]
    return table("Step time", ("part", ">time", ">share", ""), rows)


def comparison_table(plan: Document) -> RenderableType:
    """Other layouts and other targets."""
    baselines = [(f"baseline: {b['name']}", *baseline_cells(b)) for b in plan.get("baselines", [])]
    alternatives = [
        (f"target: {a['target']}", seconds(a["step_time_s"]), f"{100 * a['relative']:+.1f} %")
        for a in plan.get("alternatives", [])
    ]
    if not baselines and not alternatives:
        return Group()
    return table("Compared with", ("", ">step time", ""), [*baselines, *alternatives])


def baseline_cells(baseline: Document) -> tuple[str, str]:
    """Step time and how much faster the plan is; a baseline may not fit at all."""
    if baseline.get("step_time_s") is None:
        return "does not fit", ""
    return seconds(baseline["step_time_s"]), f"plan is {baseline['speedup']:.2f} x as fast"


def search_text(search: Document) -> str:
    """How long the search took."""
    return f"{search['evaluated']:,} layouts in {seconds(search['elapsed_s'])}"


def progress_text(elapsed_s: float, limit_s: float, best_s: float | None) -> str:
    """How far the search is."""
    best = "no layout yet" if best_s is None else f"best step time so far {seconds(best_s)}"
    return f"{elapsed_s:.1f} of {limit_s:g} s, {best}"
