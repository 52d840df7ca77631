"""Reads pipeline layouts in Megatron's notation, such as ``Et*3|(tt|)*29m|L``.

``E`` is the embedding, ``t`` a layer, ``m`` a block of multi-token prediction, ``L`` the loss with
the head; ``|`` ends a stage, ``*n`` repeats the letter or the bracket before it, and a comma is
there for the eye. Stages are virtual stages: with vp > 1 they are dealt out round robin.
"""

from dataclasses import dataclass
from itertools import groupby

from costmodel.errors import InputError, Violation
from costmodel.layout.split import balanced

MAX_LENGTH = 4096
"""Characters of a notation, and of what it expands to times 64: a guard against ``*9999999``."""
MAX_SYMBOLS = 64 * MAX_LENGTH
MAX_BRACKETS = 8
SYMBOLS = "EtmL|"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotatedStage:
    """What one (virtual) stage holds: numbers of layers, MTP blocks, embeddings and losses."""

    layers: int
    mtp: int
    embedding: int
    loss: int

    @property
    def is_empty(self) -> bool:
        """Whether the stage holds nothing at all."""
        return not (self.layers or self.mtp or self.embedding or self.loss)


def read_notation(text: str, *, field: str = "/layout") -> tuple[NotatedStage, ...]:
    """The stages of a pipeline in Megatron's notation. Raises InputError for a bad string."""
    if len(text) > MAX_LENGTH:
        raise _refused(field, text, f"must have at most {MAX_LENGTH} characters")
    expanded = _Reader(text.replace("\\|", "|").replace(" ", ""), field).read()
    return tuple(
        NotatedStage(
            layers=part.count("t"),
            mtp=part.count("m"),
            embedding=part.count("E"),
            loss=part.count("L"),
        )
        for part in expanded.split("|")
    )


class _Reader:
    """Expands repetitions by recursive descent: items -> item*, item -> (letter | bracket) [*n]."""

    def __init__(self, text: str, field: str) -> None:
        self._text = text
        self._field = field
        self._at = 0

    def read(self) -> str:
        expanded = self._items(0)
        if self._at < len(self._text):
            raise self._error("has a closing bracket without an opening one")
        return expanded

    def _items(self, depth: int) -> str:
        found = ""
        while self._at < len(self._text) and self._text[self._at] != ")":
            found += self._item(depth)
            if len(found) > MAX_SYMBOLS:
                raise self._error(f"must expand to at most {MAX_SYMBOLS} symbols")
        return found

    def _item(self, depth: int) -> str:
        symbol = self._text[self._at]
        self._at += 1
        if symbol == ",":
            return ""
        if symbol == "(":
            unit = self._bracket(depth + 1)
        elif symbol in SYMBOLS:
            unit = symbol
        else:
            raise self._error(f"must be made of E, t, m, L, |, *, () and numbers, not {symbol!r}")
        return unit * self._times(len(unit))

    def _bracket(self, depth: int) -> str:
        if depth > MAX_BRACKETS:
            raise self._error(f"must nest at most {MAX_BRACKETS} brackets")
        unit = self._items(depth)
        if self._at == len(self._text):
            raise self._error("must close every bracket")
        self._at += 1
        return unit

    def _times(self, length: int) -> int:
        if not self._text.startswith("*", self._at):
            return 1
        self._at += 1
        start = self._at
        while self._at < len(self._text) and self._text[self._at] in "0123456789":
            self._at += 1
        digits = self._text[start : self._at]
        if not digits or len(digits) > 6:
            raise self._error("must have a number of at most 6 digits after *")
        if int(digits) * length > MAX_SYMBOLS:
            raise self._error(f"must expand to at most {MAX_SYMBOLS} symbols")
        return int(digits)

    def _error(self, rule: str) -> InputError:
        return _refused(self._field, self._text, f"{rule} (at character {self._at})")


def _refused(field: str, text: str, rule: str) -> InputError:
    return InputError.of(field=field, value=text, rule=rule, fix="write it as in Et*3|(tt|)*29m|L")


def check_notation(
    stages: tuple[NotatedStage, ...],
    *,
    num_layers: int,
    mtp: int,
    num_stages: int,
    field: str = "/layout",
) -> tuple[Violation, ...]:
    """All rules that the stages break for a model and a number of virtual stages."""
    layers, depth = sum(s.layers for s in stages), sum(s.mtp for s in stages)
    empty = [i for i, stage in enumerate(stages) if stage.is_empty]
    ends = stages[0].embedding, sum(s.embedding for s in stages)
    checks = (
        (len(stages) == num_stages, len(stages), f"must have {num_stages} stages (pp x vp)"),
        (layers == num_layers, layers, f"must have the model's {num_layers} layers"),
        (depth == mtp, depth, f"must have as many m as the model's MTP depth {mtp}"),
        (not empty, empty, "must leave no stage without anything"),
        (ends == (1, 1), ends[1], "must have one E, in the first stage"),
        (stages[-1].loss > 0, stages[-1].loss, "must have L in the last stage"),
        (_mtp_last(stages), depth, "must have every m after the last t"),
    )
    fix = _fix(num_layers, mtp, num_stages)
    return tuple(
        Violation(field=field, value=value, rule=rule, fix=fix)
        for holds, value, rule in checks
        if not holds
    )


def _mtp_last(stages: tuple[NotatedStage, ...]) -> bool:
    first = next((i for i, s in enumerate(stages) if s.mtp), len(stages))
    return all(s.layers == 0 for s in stages[first + 1 :])


def _fix(num_layers: int, mtp: int, num_stages: int) -> str:
    """A balanced string that is legal."""
    if num_layers < num_stages - 1:
        return "use fewer stages"
    # One layer fewer than stages: the first stage holds the embedding alone.
    counts = balanced(num_layers, num_stages)
    stages = [_letters("t", count) for count in counts]
    stages[0] = f"E{stages[0]}"
    stages[-1] = f"{stages[-1]}{_letters('m', mtp)}L"
    runs = [(stage, len(list(group))) for stage, group in groupby(stages)]
    written = [f"({stage}|)*{times}" if times > 1 else f"{stage}|" for stage, times in runs]
    return f"for example {''.join(written).removesuffix('|')}"


def _letters(symbol: str, count: int) -> str:
    return symbol * count if count < 2 else f"{symbol}*{count}"


def notation_warnings(stages: tuple[NotatedStage, ...]) -> tuple[str, ...]:
    """What is legal notation and needs a runtime's support."""
    only_mtp = any(s.mtp and not s.layers for s in stages)
    spread = sum(s.mtp > 0 for s in stages) > 1
    losses = sum(s.loss for s in stages) > 1
    remarks = (
        (only_mtp, "a stage with multi-token prediction and no layer needs the runtime's support"),
        (spread, "multi-token prediction on several stages is a feature of development branches"),
        (losses, "a loss split over stages is a feature of development branches"),
    )
    return tuple(text for holds, text in remarks if holds)
