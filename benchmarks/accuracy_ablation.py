"""What each term of the step time is worth: held-out errors with one taken away at a time.

    python benchmarks/accuracy_ablation.py CASES... --findings FINDINGS.json -o FILE [--most N]

FINDINGS: written by ``accuracy_protocols.py``; its constants are taken, of every stack and fold,
and no constant is fitted again. Refitted is one factor for each stack and fold: what the median
of the stack's other models (known stack) or of the other stacks (unknown stack) is off by.
Tuned rows only, at most N evenly spaced ones of a stack, so that it takes a minute.
"""

import argparse
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from math import exp, log
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from costmodel.calibration.accuracy import MACRO_ROWS
from costmodel.calibration.case import Case
from costmodel.calibration.fit import timed_cases
from costmodel.calibration.linear import moved, step_seconds
from costmodel.calibration.parameters import PARAMETERS
from costmodel.calibration.prepare import Prepared
from costmodel.calibration.read import read_cases
from costmodel.efficiency import DEFAULT_EFFICIENCY, Efficiency

VIEWS = ("known stack", "unknown stack")
HANDOVERS = "pipeline bubble and hand-overs"
KERNELS = "attention kernels measured on the chip"

TERMS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "tensor-parallel traffic": {"tp_exposed": 0.0},
    "expert-parallel traffic": {"ep_exposed": 0.0},
    "gradient sums, sharded weights": {"sync_traffic": 0.0},
    HANDOVERS: {},
    "host launches, fixed cost of a step": {"host_op_s": 0.0, "step_overhead_s": 0.0},
    "ops bound by memory": {
        "memory_traffic": 0.0,
        "score_traffic": 0.0,
        "head_bytes_per_logit": 0.0,
    },
    "shape of products (fixed time, traffic)": {
        "gemm_fixed_s": 0.0,
        "gemm_traffic": 0.0,
        "expert_fixed_s": 0.0,
    },
    "attention by length, its slower backward": {
        "attention_half_length": 0.0,
        "attention_backward": 2.5,
    },
    "overlap (all traffic exposed)": {
        "tp_exposed": 1.0,
        "ep_exposed": 1.0,
        "cp_hidden_attention_share": 0.0,
        "cp_exposed_always": 1.0,
        "sync_overlap": 0.0,
        "sync_exposed": 1.0,
        "sharded_weights_overlap": 0.0,
        "sharded_weights_exposed": 0.0,
        "p2p_exposed": 1.0,
    },
    KERNELS: {},
}
"""What takes a term away. With nothing hidden, sharded traffic is exposed once as it is; every
chip's attention kernels then reach what those of an unmeasured chip do."""

Logs = dict[str, dict[str, float]]
"""By term and row: ln of predicted over measured seconds."""


def main() -> None:
    """Predicts every tuned row under every term's absence, and summarises."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="+", type=Path)
    parser.add_argument("--findings", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--most", type=int, default=40, help="rows of a stack, at most")
    options = parser.parse_args()
    findings = json.loads(options.findings.read_text(encoding="utf-8"))
    found = ablated(read_cases(options.cases), findings, options.most)
    options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for term in found["terms"]:
        print(term["name"], {view: term[view]["refitted"]["macro"] for view in VIEWS})


def ablated(cases: Iterable[Case], findings: Mapping[str, Any], most: int) -> dict[str, Any]:
    """The document that ``accuracy_report.py`` reads. most: rows of a stack."""
    chosen = _chosen(findings["as shipped"]["facts"], most)
    stacks = timed_cases(case for case in cases if case.id in chosen)
    _ROWS.clear()
    _ROWS.update({one.case.id: one for rows in stacks.values() for one in rows})
    logs = {view: _all_logs(findings[view]["folds"]) for view in VIEWS}
    summaries = {view: _summaries(logs[view], findings[view]["folds"]) for view in VIEWS}
    terms = [{"name": name, **{v: summaries[v][name] for v in VIEWS}} for name in TERMS]
    return {"views": list(VIEWS), "most": most, "terms": terms}


def _chosen(facts: Sequence[Mapping[str, Any]], most: int) -> set[str]:
    """Evenly spaced tuned rows of every stack."""
    tuned: dict[str, list[str]] = defaultdict(list)
    for row in facts:
        if row["tuned"]:
            tuned[row["stack"]].append(row["id"])
    return {
        rows[i * len(rows) // min(len(rows), most)]
        for rows in tuned.values()
        for i in range(min(len(rows), most))
    }


_ROWS: dict[str, Prepared] = {}
"""For forked processes to inherit."""


def _all_logs(folds: Sequence[Mapping[str, Any]]) -> Logs:
    found: Logs = {name: {} for name in TERMS}
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("fork")) as workers:
        for part in workers.map(_fold_logs, folds):
            for name, own in part.items():
                found[name].update(own)
    return found


def _fold_logs(fold: Mapping[str, Any]) -> Logs:
    rows = [_ROWS[name] for name in fold["rows"] if name in _ROWS]
    efficiency = _constants(fold)
    return {
        name: {row.case.id: _log_ratio(row, replace(efficiency, **own), name) for row in rows}
        for name, own in TERMS.items()
    }


def _constants(fold: Mapping[str, Any]) -> Efficiency:
    """The constants that a fold was predicted with."""
    known = {parameter.name: parameter for parameter in PARAMETERS}
    parameters = [known[name] for name in fold["parameters"]]
    return moved(DEFAULT_EFFICIENCY, parameters, np.array(fold["x"]))


def _log_ratio(row: Prepared, efficiency: Efficiency, term: str) -> float:
    predicted_s = step_seconds(_unmeasured(row) if term == KERNELS else row, efficiency)
    if term == HANDOVERS:
        predicted_s = sum(
            share * (one.step_time_s - one.breakdown["bubble"] - one.breakdown["pp"])
            for one, share in row.evaluations(efficiency)
        )
    return log(predicted_s / (row.step_s or 1.0))


def _unmeasured(row: Prepared) -> Prepared:
    """The row on chips whose attention kernels nobody measured."""
    cluster = row.problem.cluster
    pools = tuple(replace(p, chip=replace(p.chip, attention_fraction={})) for p in cluster.pools)
    problem = replace(row.problem, cluster=replace(cluster, pools=pools))
    return replace(row, problem=problem)


def _summaries(logs: Logs, folds: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: {"plain": _summary(own, lambda _: 0.0), "refitted": _summary(own, _shift(own, folds))}
        for name, own in logs.items()
    }


def _shift(own: Mapping[str, float], folds: Sequence[Mapping[str, Any]]) -> Callable[[str], float]:
    """By row: the median that its fold's peers are off by, their stacks counted alike."""
    shifts: dict[str, float] = {}
    for fold in folds:
        alone = sum(one["stack"] == fold["stack"] for one in folds) == 1
        peers: dict[str, list[float]] = defaultdict(list)
        for one in folds:
            if one is not fold and (alone or one["stack"] == fold["stack"]):
                peers[one["stack"]] += [own[row] for row in one["rows"] if row in own]
        medians = [float(np.median(logs)) for logs in peers.values() if logs]
        shift = float(np.mean(medians)) if medians else 0.0
        shifts.update(dict.fromkeys(fold["rows"], shift))
    return shifts.__getitem__


def _summary(own: Mapping[str, float], shift: Callable[[str], float]) -> dict[str, Any]:
    """Absolute errors: mean of the stacks' medians, median, mean, and every stack's median."""
    errors: dict[str, list[float]] = defaultdict(list)
    for row, ratio in own.items():
        errors[_ROWS[row].case.stack].append(abs(exp(ratio - shift(row)) - 1.0))
    every = [error for one in errors.values() for error in one]
    medians = {stack: float(np.median(one)) for stack, one in sorted(errors.items())}
    large = [medians[stack] for stack, one in errors.items() if len(one) >= MACRO_ROWS]
    return {
        "n": len(every),
        "macro": float(np.mean(large)) if large else None,
        "median": float(np.median(every)),
        "mean": float(np.mean(every)),
        "stacks": medians,
    }


if __name__ == "__main__":
    main()
