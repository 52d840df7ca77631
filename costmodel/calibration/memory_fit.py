"""Fits what training stacks print of their memory, and predicts runs that the fit has not seen.

Three constants a stack (``memory_seen.MemoryConstants``), by least squares on
ln(predicted / measured) of the peaks with Gaussian priors and a soft-L1 loss. Two protocols, as
for time: an *unknown stack* is predicted with the mean constants of the other stacks that print
the same kind of figure, a *known* one with constants fitted to its other models.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from costmodel.calibration.case import Case, UnscorableError
from costmodel.calibration.convention import ALLOCATED, CARD, RESERVED
from costmodel.calibration.fit import model_key
from costmodel.calibration.linear import FloatArray
from costmodel.calibration.memory_seen import MemoryConstants, Seen, figure, seen
from costmodel.calibration.prepare import Prepared, prepare
from costmodel.calibration.protocols import FOLDS
from costmodel.errors import InputError

GIB = float(2**30)
BASES = {
    ALLOCATED: MemoryConstants(),
    RESERVED: MemoryConstants(lasting=1.02, working=1.05),
    CARD: MemoryConstants(lasting=1.02, working=1.05),
}
"""Before any fit: PyTorch reserves blocks of 2 to 20 MiB (c10/cuda, ``CUDACachingAllocator``)."""

SPREAD = np.array([0.10, 0.15, 1.0])
"""Prior standard deviations of ln f, ln g and c in GiB."""

ROW_SIGMA, MODEL_ROWS = 0.05, 8
"""Standard deviation of a row's ln(predicted / measured); rows that one model counts as at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """A measured peak and what the cost model says of it."""

    prepared: Prepared
    shown: Seen
    measured: float

    def error(self, constants: MemoryConstants) -> float:
        """Signed relative error under these constants."""
        return figure(self.shown, constants) / self.measured - 1.0


def peaks(cases: Iterable[Case]) -> dict[str, list[Peak]]:
    """By stack, the cases that can be predicted and that measured a peak."""
    found: dict[str, list[Peak]] = defaultdict(list)
    for case in cases:
        measured = case.measured.number("peak_memory_bytes")
        if not measured or not case.stack:
            continue
        try:
            prepared = prepare(case)
            evaluations = prepared.evaluations(prepared.problem.efficiency)
        except (UnscorableError, InputError):
            continue
        found[case.stack].append(
            Peak(
                prepared=prepared,
                shown=seen(prepared, evaluations),
                measured=measured * prepared.how.byte_factor,
            )
        )
    return dict(sorted(found.items()))


def fitted(rows: Sequence[Peak], prior: MemoryConstants) -> MemoryConstants:
    """The constants of these rows; the prior's where there are none, or nothing to fit."""
    if not rows or rows[0].prepared.how.memory == ALLOCATED:
        return prior
    models = [model_key(row.prepared) for row in rows]
    alike = np.array([models.count(model) for model in models])
    weight = np.sqrt(np.minimum(1.0, MODEL_ROWS / alike)) / ROW_SIGMA
    start = _position(prior)

    def residuals(x: FloatArray) -> FloatArray:
        constants = _constants(x)
        far = weight * np.log([1.0 + row.error(constants) for row in rows])
        soft = np.sign(far) * np.sqrt(2.0 * (np.sqrt(1.0 + far * far) - 1.0))
        return np.concatenate([soft, (x - start) / SPREAD])

    reach = 4.0 * SPREAD
    found = least_squares(residuals, start, bounds=(start - reach, start + reach))
    return _constants(np.asarray(found.x))


def _position(constants: MemoryConstants) -> FloatArray:
    factors = np.log([constants.lasting, constants.working])
    return np.array([*factors, constants.beside_bytes / GIB])


def _constants(x: FloatArray) -> MemoryConstants:
    return MemoryConstants(
        lasting=float(np.exp(x[0])), working=float(np.exp(x[1])), beside_bytes=float(x[2]) * GIB
    )


def prior_of(stacks: Mapping[str, Sequence[Peak]], name: str) -> MemoryConstants:
    """Mean of the other stacks that print the same kind of figure; else what holds before any."""
    kind = stacks[name][0].prepared.how.memory
    others = [
        _position(fitted(rows, BASES[kind]))
        for other, rows in stacks.items()
        if other != name and rows[0].prepared.how.memory == kind
    ]
    return _constants(np.mean(others, axis=0)) if others else BASES[kind]


def unknown_stack(stacks: Mapping[str, Sequence[Peak]]) -> dict[str, list[float]]:
    """Errors by stack, each under the constants of the others."""
    found: dict[str, list[float]] = {}
    for name, rows in stacks.items():
        constants = prior_of(stacks, name)
        found[name] = [row.error(constants) for row in rows]
    return found


def known_stack(stacks: Mapping[str, Sequence[Peak]]) -> dict[str, list[float]]:
    """Errors by stack, each fourth of its models under constants fitted to the others."""
    found: dict[str, list[float]] = {}
    for name, rows in stacks.items():
        models = sorted({model_key(row.prepared) for row in rows})
        prior, errors = prior_of(stacks, name), list[float]()
        for fold in range(min(FOLDS, len(models)) if len(models) > 1 else 0):
            held = set(models[fold::FOLDS])
            own = fitted([r for r in rows if model_key(r.prepared) not in held], prior)
            errors += [r.error(own) for r in rows if model_key(r.prepared) in held]
        if errors:
            found[name] = errors
    return found


def shipped(stacks: Mapping[str, Sequence[Peak]]) -> dict[str, MemoryConstants]:
    """The constants of every stack that prints more than what is allocated, from all its rows."""
    return {
        name: fitted(rows, prior_of(stacks, name))
        for name, rows in stacks.items()
        if rows[0].prepared.how.memory != ALLOCATED
    }


def write_memory(folder: Path, constants: Mapping[str, MemoryConstants]) -> None:
    """Stores them in the profiles whose ``runs`` name them."""
    for name, own in constants.items():
        path = folder / f"{name}.yaml"
        text = path.read_text(encoding="utf-8")
        for key, value in (
            ("memory_lasting", f"{own.lasting:.3f}"),
            ("memory_working", f"{own.working:.3f}"),
            ("memory_beside_bytes", f"{own.beside_bytes:.2e}"),
        ):
            text = re.sub(rf"^  {key}: .*$", f"  {key}: {value}", text, flags=re.MULTILINE)
        path.write_text(text, encoding="utf-8")
