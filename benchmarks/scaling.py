"""How the search scales with chips, pools and layers: pictures and a table.

    python benchmarks/scaling.py [--only chips|pools|layers] [--runs 3] [--time-limit S] [-o FILE]

Writes docs/benchmarks/*.svg and the section between its markers in docs/benchmarks.md.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from benchmarks.sections import PAGE, markdown_table, write_section
from costmodel.hardware.read import load_cluster
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.model.graph import ModelGraph
from costmodel.model.read import catalogue_config, load_model, read_config
from planner import plan

SECTION = "scaling"
TYPES = (
    ("nvidia-h100-sxm-80g", "nvlink4", "infiniband-ndr", 8),
    ("nvidia-a800-sxm-80g", "nvlink3-a800", "infiniband-hdr", 4),
    ("nvidia-h20-96g", "nvlink4", "roce-400g", 4),
    ("huawei-ascend-910b2", "hccs-910b", "roce-200g", 8),
    ("nvidia-h200-sxm-141g", "nvlink4", "infiniband-ndr", 8),
    ("amd-mi300x", "xgmi-mi300x", "roce-400g", 8),
    ("nvidia-a100-sxm-40g", "nvlink3", "infiniband-hdr", 4),
    ("metax-c500", "metaxlink", "roce-200g", 4),
)
"""Chip, links and NICs of a pool; more pools begin again at the first."""

BETWEEN = {"link": "ethernet-100g", "nics": 1, "oversubscription": 4}
Question = tuple[ModelGraph, Cluster, Job]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Medians of one size: seconds to within 1 % of the final plan, of the search, step time."""

    size: int
    within_s: float
    search_s: float
    step_time_s: float


def cluster_of(pools: int, nodes: int) -> Cluster:
    """So many pools of so many nodes with 8 chips, each an island of its own."""

    def pool(k: int) -> dict[str, Any]:
        chip, scale_up, scale_out, nics = TYPES[k % len(TYPES)]
        links = {"scale_up": scale_up, "scale_out": {"link": scale_out, "nics": nics}}
        shape = {"nodes": nodes, "chips_per_node": 8, "chip": chip}
        return {"name": f"pool{k}", "island": f"island{k}"} | shape | links

    joined = {"between_islands": BETWEEN} if pools > 1 else {}
    every = [pool(k) for k in range(pools)]
    return load_cluster(
        {"name": f"{pools}x{nodes}", "class_defaults": True, "pools": every} | joined
    )


def by_chips(chips: int) -> Question:
    """Llama-3-70B on four types of chip."""
    job = Job(global_batch_size=max(256, chips // 4), sequence_length=4096)
    return load_model("llama3-70b"), cluster_of(4, chips // 32), job


def by_pools(pools: int) -> Question:
    """Llama-3.1-405B on pools of 1,024 chips."""
    job = Job(global_batch_size=4096, sequence_length=8192)
    return load_model("llama3.1-405b"), cluster_of(pools, 128), job


def by_layers(layers: int) -> Question:
    """Llama-3-8B with more layers on four pools of 1,024 chips."""
    config = catalogue_config("llama3-8b") | {"num_hidden_layers": layers}
    job = Job(global_batch_size=4096, sequence_length=4096)
    return read_config(config, name=f"llama3-{layers}"), cluster_of(4, 128), job


SERIES: dict[str, tuple[Callable[[int], Question], tuple[int, ...]]] = {
    "chips": (by_chips, (64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)),
    "pools": (by_pools, (1, 2, 4, 6, 8, 12, 16)),
    "layers": (by_layers, (16, 32, 64, 128, 256, 512, 1024)),
}


def point(question: Question, size: int, runs: int, time_limit_s: float) -> Point:
    """Medians of so many searches for the target ``any``."""
    seconds: list[float] = []
    within: list[float] = []
    step_s = float("inf")
    for _ in range(runs):
        start = monotonic()
        found = plan(*question, target="any", time_limit_s=time_limit_s)
        seconds.append(monotonic() - start)
        within.append(found.effort.first_within_1pct_s)
        step_s = found.step_time_s if found.layout is not None else float("inf")
    return Point(size=size, within_s=median(within), search_s=median(seconds), step_time_s=step_s)


def points(name: str, runs: int, time_limit_s: float) -> Iterator[Point]:
    """A series, as it is done; the first search of a process, which loads loops, is left out."""
    question, sizes = SERIES[name]
    plan(*question(sizes[0]), target="any", time_limit_s=time_limit_s)
    for size in sizes:
        found = point(question(size), size, runs, time_limit_s)
        print(name, found, flush=True)
        yield found


def picture(name: str, found: list[Point], path: Path) -> None:
    """Seconds over size; the same points give the same bytes under one version of matplotlib."""
    mpl.rcParams["svg.hashsalt"] = name
    figure = Figure(figsize=(5.0, 3.4), layout="constrained")
    FigureCanvasSVG(figure)
    axes: Any = figure.add_subplot()
    sizes = [p.size for p in found]
    axes.plot(sizes, [p.search_s for p in found], "o-", color="#0072b2", label="until the plan")
    axes.plot(sizes, [p.within_s for p in found], "s--", color="#d55e00", label="within 1 % of it")
    axes.set(xscale="log", yscale="log", xlabel=name, ylabel="s")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=7)
    axes.minorticks_off()
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Creator": None})


def text(found: dict[str, list[Point]], runs: int, time_limit_s: float) -> str:
    """The section of the page."""
    heads = ["", "size", "within 1 % after s", "until the plan s", "step s"]
    rows = [
        [name, f"{p.size:,}", f"{p.within_s:.2f}", f"{p.search_s:.1f}", f"{p.step_time_s:.4g}"]
        for name, series in found.items()
        for p in series
    ]
    pictures = "\n".join(f"![seconds over {n}](benchmarks/{n}.svg)" for n in found)
    repeat = f"python benchmarks/scaling.py --runs {runs} --time-limit {time_limit_s:g}"
    return f"""## Scaling
Seconds of a warm search for the target `any`, medians of {runs}, at most {time_limit_s:g} s a
plan. *chips*: Llama-3-70B on four types of chip in equal parts, a sequence for every four chips but
256 at least. *pools*: Llama-3.1-405B on pools of 1,024 chips of eight types. *layers*: Llama-3-8B
with more layers on four pools of 1,024 chips. Repeat with `{repeat}`.

{pictures}

{markdown_table(heads, rows)}
"""


def main() -> int:
    """Run, draw and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=sorted(SERIES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    given = parser.parse_args()
    found: dict[str, list[Point]] = {}
    for name in given.only or SERIES:
        found[name] = list(points(name, given.runs, given.time_limit))
        picture(name, found[name], given.output.parent / "benchmarks" / f"{name}.svg")
        write_section(SECTION, text(found, given.runs, given.time_limit), given.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
