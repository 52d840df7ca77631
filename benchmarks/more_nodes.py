"""Whether more nodes ever make a plan slower: one node more of every pool of the mixed clusters.

Writes the table between its markers in docs/benchmarks.md:

    python benchmarks/more_nodes.py [--time-limit S] [--only CLUSTER] [--nodes N] [-o FILE]

Exit code 1 when a plan with more nodes is slower.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.clusters import JOBS, MODELS
from benchmarks.sections import PAGE, markdown_table, write_section
from costmodel.hardware.read import load_cluster
from costmodel.hardware.values import Cluster
from costmodel.model.read import load_model
from planner import plan
from planner.node_values import with_more

SECTION = "more nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Step times on a cluster, and with more nodes of each pool; infinite if nothing fits."""

    cluster: str
    model: str
    now_s: float
    more_s: dict[str, float]

    @property
    def slower(self) -> list[str]:
        """Pools of which more nodes make the plan slower."""
        return [pool for pool, s in self.more_s.items() if s > self.now_s * (1 + 1e-9)]


def row(cluster_name: str, model_name: str, nodes: int, time_limit_s: float) -> Row:
    """The plans for the target ``any``."""
    cluster, model, job = load_cluster(cluster_name), load_model(model_name), JOBS[cluster_name]

    def seconds(part: Cluster) -> float:
        found = plan(model, part, job, target="any", time_limit_s=time_limit_s)
        return found.step_time_s if found.layout is not None else float("inf")

    more = {pool.name: seconds(with_more(cluster, pool, nodes)) for pool in cluster.pools}
    return Row(cluster=cluster_name, model=model_name, now_s=seconds(cluster), more_s=more)


def rows(clusters: list[str], nodes: int, time_limit_s: float) -> Iterator[Row]:
    """All rows, as they are done."""
    for cluster in clusters:
        for model in MODELS:
            yield row(cluster, model, nodes, time_limit_s)


def text(found: list[Row], nodes: int, time_limit_s: float) -> str:
    """The section of the page."""
    heads = ["cluster", "model", "s", *(f"pool {k}" for k in range(1, 9))]
    width = 3 + max((len(r.more_s) for r in found), default=0)
    repeat = f"python benchmarks/more_nodes.py --nodes {nodes} --time-limit {time_limit_s:g}"
    return f"""## More nodes
Step time in seconds for the target `any`, and its change in per cent with {nodes} more
node{"s" if nodes > 1 else ""} of each pool, in the cluster's order. A plan may leave chips idle, so
no change should be above zero. With {time_limit_s:g} s a plan; repeat with `{repeat}`.

{markdown_table(heads[:width], [_cells(r, width) for r in found])}
"""


def _cells(r: Row, width: int) -> list[str]:
    if r.now_s == float("inf"):
        cells = [r.cluster, r.model, "does not fit"]
    else:
        changes = (f"{100 * (s / r.now_s - 1):+.2f}" for s in r.more_s.values())
        cells = [r.cluster, r.model, f"{r.now_s:.4g}", *changes]
    return [*cells, *([""] * (width - len(cells)))]


def main() -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--only", action="append", choices=sorted(JOBS))
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    given = parser.parse_args()
    found: list[Row] = []
    for each in rows(given.only or list(JOBS), given.nodes, given.time_limit):
        found.append(each)
        print(each, each.slower, flush=True)
        write_section(SECTION, text(found, given.nodes, given.time_limit), given.output)
    return 1 if any(r.slower for r in found) else 0


if __name__ == "__main__":
    sys.exit(main())
