"""Uniform layouts as columns of numbers: what the batch path scores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from costmodel.batch.values import SCHEDULES, SPLITS, IntArray, check_axes, check_written
from costmodel.errors import InputError
from costmodel.job import RECOMPUTE_MODES
from costmodel.layout.uniform import Uniform
from costmodel.layout.values import NO_OFFLOAD, StageOption


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class UniformRows:
    """N uniform layouts, one in each row; arrays of shape (N,).

    Degrees as in ``costmodel.layout.uniform.Uniform``: dp is the whole data-parallel degree, a
    stage holds the fewest replicas over which its expert grid folds. recompute: index in
    ``RECOMPUTE_MODES``. sp: 1 with sequence parallelism. schedule: index in ``SCHEDULES``.
    """

    tp: IntArray
    pp: IntArray
    vp: IntArray
    cp: IntArray
    ep: IntArray
    etp: IntArray
    dp: IntArray
    mbs: IntArray
    zero: IntArray
    recompute: IntArray
    sp: IntArray
    schedule: IntArray

    def __len__(self) -> int:
        return len(self.tp)

    @property
    def num_chips(self) -> IntArray:
        """Chips of each layout."""
        return self.tp * self.cp * self.pp * self.dp

    @property
    def replicas(self) -> IntArray:
        """Copies of each stage: the fewest over which ep x etp folds, if these divide dp."""
        grid = self.ep * self.etp
        return grid // np.gcd(grid, self.tp * self.cp)

    def take(self, chosen: IntArray | NDArray[np.bool_]) -> "UniformRows":
        """The rows of these indices, or those where the mask is true."""
        return UniformRows(**{name: getattr(self, name)[chosen] for name in COLUMNS})

    def uniform(self, row: int, pool: str) -> Uniform:
        """One row as the value that ``estimate`` and ``uniform_layout`` take."""
        own = {name: int(getattr(self, name)[row]) for name in COLUMNS}
        return Uniform(
            tp=own["tp"],
            pp=own["pp"],
            vp=own["vp"],
            cp=own["cp"],
            ep=own["ep"],
            etp=own["etp"],
            dp=own["dp"],
            mbs=own["mbs"],
            zero=own["zero"],
            recompute=RECOMPUTE_MODES[own["recompute"]],
            sp=bool(own["sp"]),
            schedule=SCHEDULES[own["schedule"]],
            pools=pool,
        )

    def option(self, row: int, pool: str) -> StageOption:
        """How the stages of a row run, as one replica."""
        return StageOption(
            pool=pool,
            tp=int(self.tp[row]),
            cp=int(self.cp[row]),
            ep=int(self.ep[row]),
            etp=int(self.etp[row]),
            micro_batch_size=int(self.mbs[row]),
            sequence_parallel=bool(self.sp[row]),
            zero=int(self.zero[row]),
            recompute=RECOMPUTE_MODES[int(self.recompute[row])],
        )


COLUMNS = tuple(f.name for f in fields(UniformRows))


LEFT_OPEN = {"mbs": 1, "recompute": "none", "sp": True, "schedule": "1f1b"}
"""Legal values for what ``Uniform`` may leave open."""


def rows_of(uniforms: Iterable[Uniform]) -> UniformRows:
    """Rows of written-out values; what they leave open is as in a job without choices.

    Raises InputError with every value that no row can have.
    """
    written = list(uniforms)
    named = (*COLUMNS, *SPLITS)
    check_written({name: [_stated(u, name) for u in written] for name in named})
    _check_on_chips(written)
    found = [_numbers(uniform) for uniform in written]
    table = np.array(found, dtype=np.int64).reshape(-1, len(COLUMNS))
    return UniformRows(**{name: table[:, i].copy() for i, name in enumerate(COLUMNS)})


def _check_on_chips(written: Sequence[Uniform]) -> None:
    for i, uniform in enumerate(written):
        if uniform.offload != NO_OFFLOAD:
            raise InputError.of(
                field=f"/{i}/offload",
                value=uniform.offload,
                rule="must be none: many layouts at once keep everything on the chips",
                fix="estimate this layout by itself",
            )


def _stated(u: Uniform, name: str) -> object:
    """A value as written, or one that stands for what is left open."""
    value = getattr(u, name)
    return LEFT_OPEN.get(name) if value is None else value


def _numbers(u: Uniform) -> tuple[int, ...]:
    usual = "interleaved" if u.vp > 1 else "1f1b"
    degrees = (u.tp, u.pp, u.vp, u.cp, u.ep, u.etp, u.dp, u.mbs or 1, u.zero)
    recompute = RECOMPUTE_MODES.index(u.recompute or "none")
    parallel = u.tp > 1 if u.sp is None else u.sp
    return (*degrees, recompute, int(parallel), SCHEDULES.index(u.schedule or usual))


@dataclass(frozen=True, slots=True, kw_only=True)
class UniformGrid:
    """Values of every degree, all of whose combinations are layouts; fields as in ``Uniform``.

    Raises InputError with every value that no row can have.
    """

    tp: Sequence[int] = (1,)
    pp: Sequence[int] = (1,)
    vp: Sequence[int] = (1,)
    cp: Sequence[int] = (1,)
    ep: Sequence[int] = (1,)
    etp: Sequence[int] = (1,)
    dp: Sequence[int] = (1,)
    mbs: Sequence[int] = (1,)
    zero: Sequence[int] = (1,)
    recompute: Sequence[str] = RECOMPUTE_MODES[:1]
    sp: Sequence[bool] = (True,)
    schedule: Sequence[str] = ("1f1b", "interleaved")

    def __post_init__(self) -> None:
        check_axes({name: getattr(self, name) for name in COLUMNS})

    def rows(self) -> UniformRows:
        """Every combination, legal or not; ``UniformScores.legal`` says which are.

        Rows that make no sense or say the same twice are left out: sequence parallelism without
        tp, and virtual stages with a schedule that has none or none with one that needs them.
        """
        modes = [RECOMPUTE_MODES.index(mode) for mode in self.recompute]
        kinds = [SCHEDULES.index(kind) for kind in self.schedule]
        degrees = (self.tp, self.pp, self.vp, self.cp, self.ep, self.etp, self.dp, self.mbs)
        axes = (*degrees, self.zero, modes, [int(on) for on in self.sp], kinds)
        grid = np.meshgrid(*(np.array(axis, np.int64) for axis in axes), indexing="ij")
        rows = UniformRows(**{name: g.ravel() for name, g in zip(COLUMNS, grid, strict=True)})
        interleaved = rows.schedule == SCHEDULES.index("interleaved")
        least = min(int(on) for on in self.sp)
        return rows.take(((rows.vp > 1) == interleaved) & ((rows.tp > 1) | (rows.sp == least)))


def distinct(columns: tuple[IntArray, ...]) -> tuple[IntArray, IntArray]:
    """The first row of each distinct combination, (K,), and the number of each row's, (N,)."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        own, count = _ranks(column)
        code, _ = _ranks(code * count + own)
    first = np.empty(int(code.max(initial=-1)) + 1, np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    return first, code


def _ranks(values: IntArray) -> tuple[IntArray, int]:
    """Numbers from 0 in the order of the values, and how many there are; values are not negative.

    By looking up where a table of that size is small: sorting would cost more than all the scores.
    """
    size = int(values.max(initial=-1)) + 1
    if size > 16 * len(values) + 65536:
        known, index = np.unique(values, return_inverse=True)
        return index.astype(np.int64), len(known)
    seen = np.zeros(size, np.bool_)
    seen[values] = True
    ranks = np.cumsum(seen) - 1
    return ranks[values], int(np.count_nonzero(seen))


def grouped(code: IntArray) -> list[IntArray]:
    """Indices of equal numbers, (K arrays); numbers as from ``distinct``."""
    narrow = code.astype(np.uint16) if code.max(initial=0) < 65536 else code
    order = np.argsort(narrow, kind="stable")
    return np.split(order, np.cumsum(np.bincount(code))[:-1]) if len(code) else []
