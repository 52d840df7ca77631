"""Stages in runs: in a long plan, neighbours that are alike share a row."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

Document = dict[str, Any]

LONG = 12
"""A plan of more stages than this has a row for every run, not for every stage."""
SPLIT = {
    "tp": "tp",
    "cp": "cp",
    "ep": "ep",
    "etp": "etp",
    "replicas": "replicas",
    "micro_batch_size": "mbs",
    "zero": "zero",
}
"""How a stage is split, by field; written as in `--layout`."""
FEW = 9
"""Longer lists of layer ranges are cut."""
USUALLY_ONE = ("cp", "ep", "etp", "replicas")
"""Not worth a word where every stage has 1."""
RUN_NOTE = "a row of several stages shows their largest times and memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Neighbouring stages that hold as much and are split alike."""

    first: int
    stages: tuple[Document, ...]

    @property
    def label(self) -> str:
        """The stages' numbers, and how many they are if not one."""
        number = len(self.stages)
        if number == 1:
            return str(self.first)
        return f"{self.first}-{self.first + number - 1} x{number}"

    def largest(self, *path: str) -> float:
        """The largest value of a field."""
        return max(_at(stage, path) for stage in self.stages)


def _at(stage: Document, path: Sequence[str]) -> float:
    value: Any = stage
    for name in path:
        value = value[name]
    return value


def runs_of(stages: Sequence[Document], *, collapse: bool) -> list[Run]:
    """The stages of a pipeline in runs; each alone unless they are to collapse."""
    numbered = list(enumerate(stages))
    if not collapse:
        return [Run(first=number, stages=(stage,)) for number, stage in numbered]
    groups = (list(group) for _, group in groupby(numbered, key=lambda pair: kind_of(pair[1])))
    return [Run(first=group[0][0], stages=tuple(stage for _, stage in group)) for group in groups]


def kind_of(stage: Document) -> tuple[object, ...]:
    """What stages of a run have in common."""
    sizes = tuple(stop - start for start, stop in stage["chunks"])
    ends = (stage["embedding"], stage["head"], stage["mtp"])
    return stage["pool"], sizes, ends, *split_of(stage).values()


def split_of(stage: Document) -> dict[str, str]:
    """How a stage is split, in words by field."""
    words = {field: f"{name}={stage[field]}" for field, name in SPLIT.items()}
    return words | {"recompute": f"recompute {stage['recompute']['mode']}"}


def shared_split(stages: Iterable[Document]) -> dict[str, str]:
    """What of the split is the same on all stages."""
    first, *others = [split_of(stage) for stage in stages]
    return {field: word for field, word in first.items() if all(o[field] == word for o in others)}


def is_worth_a_word(field: str, word: str) -> bool:
    """Whether a shared part of the split says anything."""
    return not (field in USUALLY_ONE and word.endswith("=1"))


def layers_text(stages: Sequence[Document]) -> str:
    """Number and ranges of the layers of a run, and what else it holds."""
    first, last = stages[0], stages[-1]
    ranges = [
        f"{start}-{stop - 1}"
        for (start, own_stop), (_, stop) in zip(first["chunks"], last["chunks"], strict=True)
        if own_stop > start
    ]
    listed = ",".join(ranges)
    shown = listed if len(ranges) < 2 or len(listed) <= FEW else f"{ranges[0]},.."
    number = sum(stop - start for start, stop in first["chunks"])
    each = " each" if len(stages) > 1 else ""
    letters = (("embedding", "E"), ("head", "H"), ("mtp", "M"))
    extras = "".join(letter for key, letter in letters if first[key])
    return f"{number}{each} ({shown})" + (f" +{extras}" if extras else "")
