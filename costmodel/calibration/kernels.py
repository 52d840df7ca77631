"""Constants of a stack that differ with the architecture of the chip, for the fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from costmodel.calibration.linear import FloatArray, Linear, Parameter
from costmodel.calibration.parameters import PARAMETERS
from costmodel.calibration.prepare import Prepared

SPREADS = {
    "gemm": 0.025,
    "expert_gemm": 0.05,
    "low_precision": 0.025,
    "attention": 0.05,
    "memory_traffic": 0.075,
    "host_op_s": 0.15,
}
"""Constant -> standard deviation, about the stack's, of its logarithm on one architecture: a fourth
or so of that between stacks (``PARAMETERS``)."""

REACH = 2.0
"""Largest share, and its inverse the least, that a constant takes on one architecture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Widened:
    """A stack's cases near its constants, with one more column for each share by architecture."""

    linear: Linear
    parameters: tuple[Parameter, ...]

    def start(self, x: FloatArray) -> FloatArray:
        """x of the constants followed by shares of one."""
        return np.concatenate([x, np.zeros(len(self.parameters) - len(x))])


def architecture(prepared: Prepared) -> str:
    """That of the chip that a case ran on."""
    return prepared.problem.cluster.pools[0].chip.architecture


def widened(linear: Linear, cases: Sequence[Prepared]) -> Widened:
    """Adds the shares of every architecture of a stack that ran on several.

    A share multiplies a constant on its own chips, so its slope is the constant's there.
    """
    ran_on = [architecture(case) for case in cases]
    names = sorted(set(ran_on))
    if len(names) < 2:
        return Widened(linear=linear, parameters=PARAMETERS)
    index = {parameter.name: i for i, parameter in enumerate(PARAMETERS)}
    columns, parameters = [linear.slope], list(PARAMETERS)
    for name in names:
        here = np.array([ran == name for ran in ran_on], dtype=np.float64)
        columns += [(here * linear.slope[:, index[key]])[:, None] for key in SPREADS]
        parameters += [_share(name, key) for key in SPREADS]
    grown = len(parameters) - len(PARAMETERS)
    x0 = np.concatenate([linear.x0, np.zeros(grown)])
    wide = replace(linear, x0=x0, slope=np.concatenate(columns, axis=1))
    return Widened(linear=wide, parameters=tuple(parameters))


def _share(name: str, constant: str) -> Parameter:
    return Parameter(
        name=constant,
        architecture=name,
        prior=1.0,
        spread=SPREADS[constant],
        low=1.0 / REACH,
        high=REACH,
    )
