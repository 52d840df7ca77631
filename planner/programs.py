"""Two linear programs of a search, solved by GLOP, which loads much faster than other solvers."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver import pywraplp

from planner.arrays import FloatArray, IntArray


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Packing:
    """``max gains x`` with ``uses' x <= limits`` and ``x >= 0``, for ever new gains.

    uses: (columns, limits), not negative.
    """

    solver: Any
    columns: tuple[Any, ...]

    @staticmethod
    def of(uses: IntArray, limits: FloatArray) -> "Packing":
        """The program without gains."""
        solver = _program()
        columns = tuple(solver.NumVar(0.0, solver.infinity(), "") for _ in uses)
        for use, limit in zip(uses.T, limits, strict=True):
            row = solver.Constraint(-solver.infinity(), float(limit))
            for k in np.flatnonzero(use):
                row.SetCoefficient(columns[k], float(use[k]))
        solver.Objective().SetMaximization()
        return Packing(solver=solver, columns=columns)

    def best(self, gains: FloatArray) -> tuple[float, FloatArray]:
        """The largest value and its x; the solver goes on from where it was."""
        objective = self.solver.Objective()
        for column, gain in zip(self.columns, gains.tolist(), strict=True):
            objective.SetCoefficient(column, gain)
        self.solver.Solve()
        x = np.array([column.solution_value() for column in self.columns])
        return float(gains @ x), x


def least_share(cost: FloatArray, chips: FloatArray) -> float:
    """A value below ``min x`` with ``sum_k z_kl = 1`` and ``sum_l cost_kl z_kl <= chips_k x``.

    cost: chip-seconds of each part on each pool, (pools, parts), infinite where it cannot run;
    infinite when a part can run nowhere. For weights w >= 0 of sum 1,
    ``x >= sum_l min_k w_k cost_kl / chips_k`` (weak duality), whatever w is; the program picks
    them, so that the solver's tolerances cannot make the value too high.
    """
    distinct, counts = np.unique(cost, axis=1, return_counts=True)
    if not np.isfinite(distinct).any(axis=0).all():
        return float("inf")
    able = np.isfinite(distinct)
    seconds = np.where(able, distinct, 0.0) / chips[:, None]
    weights = _weights(seconds / max(float(seconds.max()), 1e-300), able, counts)
    each = np.where(able, weights * seconds, np.inf).min(axis=0)
    return float(each @ counts)


def _program() -> Any:
    """An empty program; the stubs of the solver say nothing of its parts."""
    return cast("Any", pywraplp.Solver).CreateSolver("GLOP")


def _weights(seconds: FloatArray, able: NDArray[np.bool_], counts: IntArray) -> FloatArray:
    """``max sum_l n_l t_l`` with ``t_l <= w_k seconds_kl``, ``sum w = 1``; (pools, 1)."""
    solver = _program()
    weights = [solver.NumVar(0.0, 1.0, "") for _ in seconds]
    least = [solver.NumVar(0.0, solver.infinity(), "") for _ in counts]
    for k, part in zip(*np.nonzero(able), strict=True):
        row = solver.Constraint(0.0, solver.infinity())
        row.SetCoefficient(weights[k], float(seconds[k, part]))
        row.SetCoefficient(least[part], -1.0)
    whole = solver.Constraint(1.0, 1.0)
    for weight in weights:
        whole.SetCoefficient(weight, 1.0)
    objective = solver.Objective()
    for value, count in zip(least, counts.tolist(), strict=True):
        objective.SetCoefficient(value, float(count))
    objective.SetMaximization()
    solver.Solve()
    found = np.maximum([[weight.solution_value()] for weight in weights], 0.0)
    return found / max(float(found.sum()), 1e-300)
