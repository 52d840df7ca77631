"""How close the predictions are to published runs: one table, and JSON on request.

    python benchmarks/accuracy_first_look.py [CASES.jsonl ...] [--min-quality A|B|C] [-o FILE]

Without files, the runs bundled with the tests. ``--ratchet`` writes the medians that the tests
hold the cost model to.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from costmodel.calibration.read import read_cases
from costmodel.calibration.score import METRICS
from costmodel.calibration.summary import report

ROOT = Path(__file__).parents[1]
BUNDLED = ROOT / "tests" / "accuracy" / "cases"
REACHED = ROOT / "tests" / "accuracy" / "reached.json"
RATCHETED = {
    "Korthikanti 2022 Table 5": ("time",),
    "Megatron-LM SC21 Table 1": ("time",),
    "Megatron-LM CI golden values, small models": ("time", "peak", "static"),
    "Megatron-LM CI golden values, large models": ("time", "peak", "static"),
    "Ultra-Scale Playbook": ("time", "peak"),
}
"""What the tests hold to the figure reached."""

HEADER = ("group", "metric", "n", "median", "mean", "p90", "worst", "bias", "worst case")


def main() -> None:
    """Reads, scores, prints."""
    options = _options()
    files = options.cases or sorted(BUNDLED.glob("*.jsonl"))
    found = report(read_cases(files), min_quality=options.min_quality)
    _print_table(found)
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.ratchet:
        REACHED.write_text(json.dumps(reached(found), indent=1) + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", type=Path)
    parser.add_argument("--min-quality", choices=("A", "B", "C"), default="B")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--ratchet", action="store_true")
    options = parser.parse_args()
    if options.ratchet and options.cases:
        parser.error("--ratchet goes with the bundled cases alone")
    return options


def reached(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of each group and metric the number of cases and the median error."""
    return {
        group: {
            metric: {"n": values[metric]["n"], "median": round(values[metric]["median"], 4)}
            for metric in metrics
        }
        for group, metrics in RATCHETED.items()
        for values in [found[group]]
    }


def _print_table(found: dict[str, dict[str, Any]]) -> None:
    print("| " + " | ".join(HEADER) + " |")
    print("|" + "---|" * len(HEADER))
    for group, values in found.items():
        for metric in METRICS:
            if metric in values:
                print("| " + " | ".join(_cells(group, metric, values[metric])) + " |")
    for group, values in found.items():
        print(f"\n{group}: {values['scored']} of {values['rows']} rows scored")
        for reason, count in values["skipped"].items():
            print(f"  skipped {count:4d}: {reason}")
        for assumption, count in values["assumed"].items():
            print(f"  assumed {count:4d}: {assumption}")


def _cells(group: str, metric: str, errors: dict[str, Any]) -> list[str]:
    shares = [f"{errors[key]:.1%}" for key in ("median", "mean", "p90", "worst")]
    return [group, metric, str(errors["n"]), *shares, f"{errors['bias']:+.1%}", errors["worst_id"]]


if __name__ == "__main__":
    main()
