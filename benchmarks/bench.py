"""The frozen problems: seconds to a plan, peak memory, seconds to a proof, gap.

    python benchmarks/bench.py [NAME...] [--runs 5] [--proofs 5]

Every run is a process of its own: its first plan is cold (from the start of the process, compiled
loops kept from an earlier run), its second is warm, and the proof of the first few runs goes on
from there. Medians are kept in docs/benchmarks/problems.json, so that a line can be measured anew;
the table between the markers in docs/benchmarks.md is made of them.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Mapping
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
from planner.interleaved_search import PROOF_SHARE, longer_bound, whole_bound
from planner.pricing import priced
from planner.ramp import bound_for
from planner.space import declare
from planner.targets.registry import target_called
from planner.values import Bound, Plan
from planner.watch import Watch

SECTION = "problems"
FINDINGS = PAGE.parent / "benchmarks" / "problems.json"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Medians of a problem, of how many runs and proofs, and by which evaluator."""

    medians: Measured
    runs: int
    proofs: int
    evaluator: str


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
    if seconds <= 0:
        return found.bound
    instance, step_s = priced(problem, space), found.step_time_s
    watch, share_s = Watch(limit_s=seconds), PROOF_SHARE * seconds
    interleaved_s = longer_bound(problem, instance, target_called("any"), step_s, share_s)
    known = bound_for(instance, step_s, optimal=False)
    proved = certified(problem, instance, known, max(0.0, seconds - watch.elapsed_s))
    return whole_bound(instance, proved, interleaved_s, step_s)


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


def cells(name: str, line: Line) -> list[str]:
    """A line of the table, aims in brackets."""
    given, found = frozen(name), line.medians
    aim, proved = given.aim, line.proofs > 0 or given.prove_s == 0
    return [
        f"`{given.target}`: {given.title}",
        f"{found.within_1pct_s:.2f} ({aim.within_1pct_s:g})",
        f"{found.cold_s:.1f}",
        f"{found.warm_s:.1f}",
        f"{found.peak_bytes / 1e6:.0f}",
        f"{found.step_time_s:.4g}",
        f"{found.certificate_s:.1f} ({aim.certificate_s:g})" if proved else "not run",
        f"{100 * found.gap:.1f} ({100 * aim.gap:g})",
        f"{line.runs}, {line.proofs}",
        line.evaluator,
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
    "runs, proofs",
    "evaluator",
]


def text(found: Mapping[str, Line]) -> str:
    """The section of the page."""
    rows = [cells(name, found[name]) for name in problem_names() if name in found]
    return f"""## Frozen problems
Medians; aims in brackets. Model, cluster, job and space of each are files in
[`benchmarks/problems/`](../benchmarks/problems). *Within 1 %*: seconds of a warm search until it
knew a plan within 1 % of its final one. *Cold*: from the start of the process to the plan, with
compiled loops kept from an earlier run. *Warm*: the second plan of a process. A search that ends
near its limit (5, 20 or 10 s for `megatron`, `flagscale` and `any`) was cut off by it. `megatron`
and `flagscale` prove while they search; for `any` the proof goes on after the plan, and where it
was not run the gap is that of the bound which comes with every plan. On two shared cores of a busy
machine. Repeat with `make bench`, or `python benchmarks/bench.py NAME`.

{markdown_table(HEADS, rows)}
"""


def kept(path: Path) -> dict[str, Line]:
    """The lines of a file, none if there is no such file."""
    if not path.exists():
        return {}
    document = json.loads(path.read_text(encoding="utf-8"))
    return {name: _line(**line) for name, line in document.items()}


def _line(*, medians: dict[str, float], runs: int, proofs: int, evaluator: str) -> Line:
    return Line(medians=Measured(**medians), runs=runs, proofs=proofs, evaluator=evaluator)


def keep(lines: Mapping[str, Line], path: Path) -> None:
    """Writes the lines in the order of their problems."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {name: asdict(lines[name]) for name in problem_names() if name in lines}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    """Runs and writes; a worker prints one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(problem_names()))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--proofs", type=int, default=5)
    parser.add_argument("--worker", type=float, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    parser.add_argument("--findings", type=Path, default=FINDINGS)
    given = parser.parse_args()
    if given.worker:
        one = measure(given.names[0], given.worker, proved=given.proofs > 0)
        print(json.dumps(asdict(one)))
        return 0
    proofs = min(given.runs, given.proofs)
    for name in given.names or problem_names():
        if changes := frozen(name).changes():
            print(f"{name}: the space is no longer the frozen one: {', '.join(changes)}")
        runs = [run(name, proved=k < proofs) for k in range(given.runs)]
        line = Line(
            medians=medians(runs, proofs),
            runs=given.runs,
            proofs=proofs,
            evaluator=EVALUATOR_VERSION,
        )
        print(name, json.dumps(asdict(line)), flush=True)
        lines = {**kept(given.findings), name: line}
        keep(lines, given.findings)
        write_section(SECTION, text(lines), given.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
