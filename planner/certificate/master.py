"""The linear program over templates: most sequences within the chips, and what chips are worth."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from planner.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Value, prices per chip of each type (>= 0), toll per pipeline (>= 0)."""

    value: float
    prices: FloatArray
    toll: float


def solve(gains: FloatArray, chips: FloatArray, limits: FloatArray, most: int) -> Solution:
    """``max gains x``, ``chips' x <= limits``, ``sum x <= most``, ``x >= 0``."""
    useful = np.flatnonzero(gains > 0)
    if not len(useful):
        return Solution(value=0.0, prices=np.zeros(len(limits)), toll=0.0)
    rows = np.column_stack([chips[useful], np.ones(len(useful))]).T
    answer = linprog(
        -gains[useful], A_ub=rows, b_ub=np.append(limits, float(most)), bounds=(0, None)
    )
    marginals: FloatArray = np.asarray(answer.ineqlin.marginals, dtype=np.float64)
    worth = np.maximum(-marginals, 0.0)
    return Solution(value=-float(answer.fun or 0.0), prices=worth[:-1], toll=float(worth[-1]))
