"""Sets what the ranks report beside the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from costmodel.layout.shards import Atom, GradientGroup
from runner.rank import RankResult
from runner.recorder import Label
from runner.reference import Reference
from runner.task import Outcome, Task

FLOOR = 1e-6
"""Least scale of a parameter's gradient, relative to the largest gradient of the model. Some
gradients are zero but for rounding (the bias of keys)."""


def compare(
    task: Task,
    results: Sequence[RankResult],
    groups: Sequence[GradientGroup],
    reference: Reference,
) -> Outcome:
    """The differences and the observed traffic (``elapsed_s`` is the caller's)."""
    finder = _Differences(reference.gradients, reference.weights)
    for result in results:
        for synced in result.synced:
            atoms = groups[synced.group].atoms
            finder.gradient(atoms, *synced.gradient)
            finder.updated(atoms, *synced.weights)
    worst = max(finder.gradients, key=lambda name: finder.gradients[name], default="")
    return Outcome(
        loss_max_abs_diff=_loss_difference(task, results, reference),
        grad_max_rel_diff=finder.gradients.get(worst, 0.0),
        worst_parameter=worst,
        weight_max_rel_diff=max(finder.weights.values(), default=0.0),
        uncovered=finder.uncovered(),
        observed=_observed(results),
        elapsed_s=0.0,
    )


def _loss_difference(task: Task, results: Sequence[RankResult], reference: Reference) -> float:
    """Largest difference of a sequence's mean token loss; a sequence that nobody ran is nan."""
    seen: Counter[int] = Counter()
    for result in results:
        seen.update(result.losses)
    ours = [seen.get(row, float("nan")) for row in range(len(reference.losses))]
    extra = [value for row, value in seen.items() if row >= len(reference.losses)]
    pairs = zip(ours, reference.losses, strict=True)
    gaps = [abs(a - b) / task.job.sequence_length for a, b in pairs] + [abs(e) for e in extra]
    return float("nan") if any(gap != gap for gap in gaps) else max(gaps)


def _observed(results: Sequence[RankResult]) -> Mapping[Label, int]:
    total: Counter[Label] = Counter()
    for result in results:
        total.update(result.sent)
    return dict(total)


class _Differences:
    """Largest difference per parameter, and which elements have been compared."""

    def __init__(self, gradients: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
        self.expected = gradients
        self.expected_weights = weights
        largest = max((float(g.abs().max()) for g in gradients.values()), default=0.0)
        self.scale = {
            name: max(float(g.abs().max()), FLOOR * largest) for name, g in gradients.items()
        }
        self.seen = {name: torch.zeros_like(g, dtype=torch.bool) for name, g in gradients.items()}
        self.gradients: dict[str, float] = {}
        self.weights: dict[str, float] = {}

    def gradient(self, atoms: Sequence[Atom], offset: int, part: Tensor) -> None:
        """Compares a part of a group's flat gradient."""
        for atom, inside, found in _pieces(atoms, offset, part):
            expected = self.expected[atom.parameter][_where(atom)].flatten()[inside]
            gap = _largest(found - expected) / self.scale[atom.parameter]
            _raise(self.gradients, atom.parameter, gap)
            self._mark(atom, inside)

    def _mark(self, atom: Atom, inside: slice) -> None:
        block = self.seen[atom.parameter][_where(atom)]
        seen = block.flatten()
        seen[inside] = True
        block.copy_(seen.reshape(block.shape))

    def updated(self, atoms: Sequence[Atom], offset: int, part: Tensor) -> None:
        """Compares a part of a group's updated weights."""
        for atom, inside, found in _pieces(atoms, offset, part):
            expected = self.expected_weights[atom.parameter]
            gap = _largest(found - expected[_where(atom)].flatten()[inside])
            _raise(self.weights, atom.parameter, gap / float(expected.abs().max()))

    def uncovered(self) -> tuple[str, ...]:
        """Parameters with an element whose gradient no rank reported."""
        return tuple(name for name, seen in self.seen.items() if not bool(seen.all()))


def _where(atom: Atom) -> tuple[slice, ...]:
    return tuple(slice(a, b) for a, b in atom.box)


def _pieces(
    atoms: Sequence[Atom], offset: int, part: Tensor
) -> Iterator[tuple[Atom, slice, Tensor]]:
    """Atom by atom: which of its elements lie in a part of the flat buffer, and their values."""
    position = 0
    for atom in atoms:
        first, last = max(position, offset), min(position + atom.elements, offset + len(part))
        if first < last:
            inside = slice(first - position, last - position)
            yield atom, inside, part[first - offset : last - offset]
        position += atom.elements


def _largest(gap: Tensor) -> float:
    """Largest absolute value; nan counts as infinite."""
    return float(torch.nan_to_num(gap.abs(), nan=torch.inf, posinf=torch.inf).max())


def _raise(table: dict[str, float], name: str, gap: float) -> None:
    table[name] = max(table.get(name, 0.0), gap)
