"""The frozen problems: seconds to a plan, peak memory, seconds to a proof, gap.

    python benchmarks/bench.py [NAME...] [--runs 5] [--proofs 5] [-o FILE]

Every run is a process of its own: its first plan is cold (from the start of the process, compiled
loops kept from an earlier run), its second is warm, and the proof of the first few runs goes on
from there. Medians of all problems go to the table between the markers in docs/benchmarks.md,
those of named ones to FILE, if given.
"""

import argparse
import json
import resource
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic, time

from benchmarks.frozen import frozen, problem_names
from benchmarks.sections import PAGE, markdown_table, write_section
from costmodel.step import EVALUATOR_VERSION
from planner import plan
from planner.certificate import certified
from planner.pricing import priced
from planner.space import declare
from planner.values import Bound, Plan

SECTION = "problems"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One run, or the medians of several; certificate_s: all of proving, 0 where it was left out.

    within_1pct_s: of the warm search, until within 1 % of its final plan. gap: of the proof, else
    of the plan.
    """

    cold_s: float
    warm_s: float
    within_1pct_s: float
    peak_bytes: float
    step_time_s: float
    certificate_s: float
    bound_s: float
    gap: float


def measure(name: str, started: float, *, proved: bool) -> Measured:
    """One run, in this process, which began at ``started`` on the clock."""
    given = frozen(name)
    search = partial(
        plan,
        given.model,
        given.cluster,
        given.job,
        target=given.target,
        time_limit_s=given.time_limit_s,
    )
    search()
    cold_s, clock = time() - started, monotonic()
    found = search()
    warm_s, peak = monotonic() - clock, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    clock = monotonic()
    bound = _proof(found, given.prove_s if proved else 0.0)
    return Measured(
        cold_s=cold_s,
        warm_s=warm_s,
        within_1pct_s=found.effort.first_within_1pct_s,
        peak_bytes=float(peak),
        step_time_s=found.step_time_s,
        certificate_s=warm_s if given.prove_s == 0 else monotonic() - clock,
        bound_s=bound.step_time_s,
        gap=bound.gap,
    )


def _proof(found: Plan, seconds: float) -> Bound:
    assert found.bound is not None, "a frozen problem has a plan"
    problem = found.problem
    space = declare(
        problem.model, problem.cluster, problem.job, target="any", evaluator=EVALUATOR_VERSION
    )
    return certified(problem, priced(problem, space), found.bound, seconds)


def run(name: str, *, proved: bool) -> Measured:
    """One run in a process of its own."""
    command = [sys.executable, __file__, name, "--worker", repr(time())]
    done = subprocess.run(
        [*command, *(["--proofs", "0"] if not proved else [])],
        check=True,
        capture_output=True,
        text=True,
    )
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def medians(runs: list[Measured], proofs: int) -> Measured:
    """Of every field; what a proof says is of the runs that had one."""
    proved = runs[:proofs] or runs
    of_proofs = {"certificate_s", "bound_s", "gap"}
    return Measured(
        **{
            field: median(getattr(r, field) for r in (proved if field in of_proofs else runs))
            for field in asdict(runs[0])
        }
    )


def cells(name: str, found: Measured) -> list[str]:
    """A line of the table, aims in brackets."""
    given = frozen(name)
    aim = given.aim
    return [
        f"`{given.target}`: {given.title}",
        f"{found.within_1pct_s:.2f} ({aim.within_1pct_s:g})",
        f"{found.cold_s:.1f}",
        f"{found.warm_s:.1f}",
        f"{found.peak_bytes / 1e6:.0f}",
        f"{found.step_time_s:.4g}",
        f"{found.certificate_s:.1f} ({aim.certificate_s:g})",
        f"{100 * found.gap:.1f} ({100 * aim.gap:g})",
    ]


HEADS = [
    "space and problem",
    "within 1 % after s",
    "cold s",
    "warm s",
    "MB",
    "step s",
    "proof ends after s",
    "gap %",
]


def text(found: dict[str, Measured], runs: int, proofs: int) -> str:
    """The section of the page."""
    return f"""## Frozen problems
Medians of {runs} runs, of proofs {proofs}, by evaluator {EVALUATOR_VERSION}; aims in brackets.
Model, cluster, job and space of each are files in
[`benchmarks/problems/`](../benchmarks/problems). *Within 1 %*: seconds of a warm search until it
knew a plan within 1 % of its final one. *Cold*: from the start of the process to the plan, with
compiled loops kept from an earlier run. *Warm*: the second plan of a process. A search that ends
near its limit (5, 20 or 10 s for `megatron`, `flagscale` and `any`) was cut off by it. `megatron`
and `flagscale` prove while they search; for `any` the proof goes on after the plan.
Repeat with `make bench`.

{markdown_table(HEADS, [cells(name, each) for name, each in found.items()])}
"""


def main() -> int:
    """Runs and writes; a worker prints one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(problem_names()))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--proofs", type=int, default=5)
    parser.add_argument("--worker", type=float, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    if given.worker:
        one = measure(given.names[0], given.worker, proved=given.proofs > 0)
        print(json.dumps(asdict(one)))
        return 0
    found: dict[str, Measured] = {}
    proofs = min(given.runs, given.proofs)
    page = given.output or (None if given.names else PAGE)
    for name in given.names or problem_names():
        if changes := frozen(name).changes():
            print(f"{name}: the space is no longer the frozen one: {', '.join(changes)}")
        found[name] = medians([run(name, proved=k < proofs) for k in range(given.runs)], proofs)
        print(name, json.dumps(asdict(found[name])), flush=True)
        if page is not None:
            write_section(SECTION, text(found, given.runs, proofs), page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
