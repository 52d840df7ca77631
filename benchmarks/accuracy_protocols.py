"""Errors on published runs that the fitted constants have not seen, by two protocols.

    python benchmarks/accuracy_protocols.py CASES.jsonl... [--write] [-o FILE]

Unknown stack: a whole stack is held out and predicted with constants fitted to the others. Known
stack: a fourth of a stack's models is held out and predicted with constants fitted to its other
models. ``--write`` stores the constants fitted to all rows in the software profiles, and the
half-widths of the intervals. Peak memory by the same protocols comes last. ``-o`` stores all
findings, and those under the profiles as they then are, for ``accuracy_report.py``.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy_page import findings
from costmodel.calibration import memory_fit
from costmodel.calibration.accuracy import accuracy_document
from costmodel.calibration.fit import near_stack, pool, spreads, timed_cases
from costmodel.calibration.memory_seen import shortfall
from costmodel.calibration.parameters import PARAMETERS
from costmodel.calibration.prepare import Prepared
from costmodel.calibration.protocols import (
    Held,
    known_stack,
    rows_of,
    unknown_stack,
)
from costmodel.calibration.read import read_cases
from costmodel.calibration.widths import own_widths, pooled_widths
from costmodel.calibration.write import write_intervals, write_profiles

PROFILES = Path(__file__).parents[1] / "cluster_profiles" / "software"
SHORT = 0.05
"""Share of a chip's memory that a run may lack without being listed."""

COLUMNS = ("n", "median_ape", "mape", "p90_ape", "bias")


def main() -> None:
    """Fits, holds out, prints."""
    options = _options()
    cases = [case for case in read_cases(options.cases) if case.quality in "AB"]
    stacks = timed_cases(cases)
    pooled = pool(stacks)
    print("| constant | pooled | sd of its logarithm |\n|---|---|---|")
    fitted = pooled.fitted.efficiency
    for parameter, deviation in zip(PARAMETERS, pooled.fitted.deviation, strict=True):
        print(f"| {parameter.name} | {getattr(fitted, parameter.name):.4g} | {deviation:.2f} |")
    near = {name: near_stack(pooled, name, own) for name, own in stacks.items()}
    protocols = {
        "unknown stack": unknown_stack(stacks, pooled),
        "known stack": known_stack(stacks, pooled, near),
    }
    found: dict[str, Any] = {name: _report(name, held) for name, held in protocols.items()}
    between = spreads(pooled, near)
    peaks = memory_fit.peaks(cases)
    found["memory"] = _memory(peaks)
    found["short of memory"] = _short_of_memory(stacks)
    if options.write:
        write_profiles(PROFILES, pooled, near, between)
        widths = {
            name.split()[0]: pooled_widths([one.miss for one in held])
            for name, held in protocols.items()
        }
        stacks_own = own_widths([one.miss for one in protocols["known stack"]])
        write_intervals(PROFILES, widths, stacks_own)
        memory_fit.write_memory(PROFILES, memory_fit.shipped(peaks))
    if options.output:
        found["constants"] = findings.constants(pooled, near, between)
        found["as shipped"] = _as_shipped(options.cases)
        options.output.write_text(json.dumps(found, sort_keys=True) + "\n", encoding="utf-8")


def _as_shipped(paths: list[Path]) -> dict[str, Any]:
    """In a fresh process, which reads the profiles anew."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        return fresh.submit(findings.shipped, paths).result()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


def _report(name: str, held: list[Held]) -> dict[str, Any]:
    rows = rows_of(held)
    document = findings.document_of(rows)
    print(f"\n## {name}\n| rows | " + " | ".join(COLUMNS) + " | mean of stacks |")
    print("|" + "---|" * (len(COLUMNS) + 2))
    for metric in ("time_tuned", "time_untuned"):
        print(_line(metric, document[metric]))
    for stack, own in document["by_stack"].items():
        for metric in ("time_tuned", "time_untuned"):
            if own[metric]["n"]:
                print(_line(f"{stack}, {metric[5:]}", own[metric]))
    regret, tuned = (
        document["regret"],
        accuracy_document([row for row in rows if row.tuned], []),
    )
    print(f"\nregret: {regret}")
    print(f"coverage {document['coverage']:.3f}, half-width {document['half_width']:.3f}")
    print(f"tuned: coverage {tuned['coverage']:.3f}, half-width {tuned['half_width']:.3f}")
    for stack, own in document["by_stack"].items():
        if own["regret"]["groups"]:
            print(f"  {stack}: {own['regret']}")
    return {
        "document": document,
        "predictions": findings.predictions(rows),
        "folds": findings.folds(held),
    }


def _memory(peaks: dict[str, list[memory_fit.Peak]]) -> dict[str, Any]:
    """Errors of the peaks."""
    found = findings.memory(peaks)
    print("\n## peak memory\n| rows | n | median | mean | p90 | bias |\n|" + "---|" * 6)
    for protocol in ("unknown stack", "known stack"):
        by_stack = found[protocol]
        pooled = [error for errors in by_stack.values() for error in errors]
        for name, errors in [("all", pooled), *by_stack.items()]:
            print(f"| {protocol}, {name} | {len(errors)} | " + " | ".join(_shares(errors)) + " |")
    return found


def _short_of_memory(stacks: Mapping[str, Sequence[Prepared]]) -> dict[str, list[str]]:
    """Runs that are predicted to lack memory although they ran, by stack."""
    short = {
        name: [case.case.id for case in cases if lacks_memory(case) > SHORT]
        for name, cases in stacks.items()
    }
    total = sum(len(cases) for cases in stacks.values())
    print(f"\npredicted to lack more than {SHORT:.0%} of memory: ", end="")
    print(f"{sum(map(len, short.values()))} of {total} runs")
    for name, ids in short.items():
        if ids:
            print(f"  {name}: {', '.join(ids)}")
    return short


def lacks_memory(case: Prepared) -> float:
    """Share of its chips' memory that the case lacks."""
    return shortfall(case, case.evaluations(case.problem.efficiency))


def _shares(errors: list[float]) -> list[str]:
    if not errors:
        return ["-"] * 4
    far = np.abs(errors)
    values = np.median(far), far.mean(), np.quantile(far, 0.9), np.median(errors)
    return [f"{value:.1%}" for value in values]


def _line(name: str, errors: dict[str, Any]) -> str:
    if not errors["n"]:
        return f"| {name} | 0 |"
    cells = [str(errors["n"]), *(f"{errors[key]:.1%}" for key in COLUMNS[1:])]
    macro = errors["macro_median"]
    return f"| {name} | " + " | ".join(cells) + f" | {'-' if macro is None else f'{macro:.1%}'} |"


if __name__ == "__main__":
    main()
