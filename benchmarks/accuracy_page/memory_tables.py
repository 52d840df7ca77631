"""Tables of memory: peaks by both protocols, static bytes, runs predicted not to fit."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.accuracy_page.cells import NONE, median_and_mean, number, share, table
from benchmarks.accuracy_page.time_tables import VIEWS, Findings, document

GIB = 2**30


def whole(findings: Findings) -> str:
    """All peaks by protocol, and static bytes as shipped."""
    memory = findings["memory"]
    rows = [[f"{view}, peak", *_errors(_pooled(memory[view]))] for view in VIEWS[:2]]
    static = document(findings, "as shipped")["static_memory"]
    if static["n"]:
        cells = [share(static[key]) for key in ("median_ape", "mape", "p90_ape")]
        rows.append(["static, as shipped", str(static["n"]), *cells])
    return table(["", "rows", "median", "mean", "p90"], rows)


def _pooled(by_stack: dict[str, list[float]]) -> list[float]:
    return [error for errors in by_stack.values() for error in errors]


def _errors(errors: Sequence[float]) -> list[str]:
    if not errors:
        return ["0", NONE, NONE, NONE]
    far = np.abs(errors)
    return [str(len(far)), *map(share, (np.median(far), far.mean(), np.quantile(far, 0.9)))]


def by_stack(findings: Findings) -> str:
    """Every stack that prints a peak or static bytes."""
    memory = findings["memory"]
    shipped = document(findings, "as shipped")["by_stack"]
    rows = [
        [
            stack,
            memory["kinds"][stack],
            str(len(memory["unknown stack"][stack])),
            *(_two(memory[view].get(stack, [])) for view in VIEWS[:2]),
            median_and_mean(shipped.get(stack, {}).get("static_memory", {})),
        ]
        for stack in sorted(memory["unknown stack"])
    ]
    unknown, known, static = "unknown", "known", "static, shipped"
    pair = ": median / mean"
    head = ["stack", "prints", "rows", unknown + pair, known + pair, static + pair]
    return table(head, rows)


def _two(errors: Sequence[float]) -> str:
    cells = _errors(errors)
    return f"{cells[1]} / {cells[2]}" if errors else NONE


def constants(findings: Findings) -> str:
    """What the printed figures count over what a step needs."""
    rows = [
        [
            stack,
            number(own["lasting"]),
            number(own["working"]),
            f"{own['beside_bytes'] / GIB:.2f}",
        ]
        for stack, own in sorted(findings["memory"]["constants"].items())
    ]
    return table(["stack", "f (lasting)", "g (working)", "c, GiB"], rows)


def short(findings: Findings) -> str:
    """Runs that ran and are predicted to lack memory, by stack."""
    lacking = [row for row in findings["as shipped"]["facts"] if row["short"]]
    return _counted(row["stack"] for row in lacking) or "none"


def _counted(names: Iterable[str]) -> str:
    counts = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in counts)
