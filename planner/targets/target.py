"""A target: rules on layouts, and how each of them clips the space before the search."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from costmodel.errors import Violation
from costmodel.layout.values import Layout, StageOption
from costmodel.problem import Problem

Check = Callable[[Problem, Layout], Iterable[Violation]]
Keeps = Callable[[Problem, StageOption], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the layouts of a space have in common, so that only such are searched.

    equal: fields of the stage options that are equal on all stages of all pipelines.
    one_split: all pipelines cut the layers at the same places.
    one_shape: all pipelines are alike, pools included.
    even_split: layers are dealt evenly, earlier stages get those left over.
    one_vendor: all chips come from one vendor.
    depths: numbers of stages that a pipeline may have; empty for any.
    pool_order: the order in which pipelines visit pools; empty for any.
    templates: largest number of different pipelines; None for any.
    schedules: their kinds; empty for any. chunks: runs of layers on a stage; empty for any.
    """

    equal: frozenset[str] = field(default_factory=frozenset[str])
    one_split: bool = False
    one_shape: bool = False
    even_split: bool = False
    one_vendor: bool = False
    depths: frozenset[int] = frozenset()
    pool_order: tuple[str, ...] = ()
    templates: int | None = None
    schedules: frozenset[str] = frozenset()
    chunks: frozenset[int] = frozenset()

    def __or__(self, other: "Shape") -> "Shape":
        """Both restrictions."""
        return Shape(
            equal=self.equal | other.equal,
            one_split=self.one_split or other.one_split,
            one_shape=self.one_shape or other.one_shape,
            even_split=self.even_split or other.even_split,
            one_vendor=self.one_vendor or other.one_vendor,
            depths=self.depths or other.depths,
            pool_order=self.pool_order or other.pool_order,
            templates=self.templates if other.templates is None else other.templates,
            schedules=self.schedules or other.schedules,
            chunks=self.chunks or other.chunks,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that a target asks of a layout.

    id: unique within the target. sentence: what it asks. check: violations of a layout.
    keeps: whether a stage option may be used at all; where it says so of every option of a
    layout, ``check`` finds nothing. shape: what it says of the layout as a whole, if the search
    can follow it.
    """

    id: str
    sentence: str
    check: Check
    keeps: Keeps | None = None
    shape: Shape = field(default_factory=Shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A framework in one version, or what stands for one.

    maintained: whether ``launchable`` considers it. default: the version that the bare name means.
    source: where the rules were read.
    """

    name: str
    version: str = ""
    title: str
    source: str = ""
    maintained: bool = False
    default: bool = True
    rules: tuple[Rule, ...] = ()

    @property
    def label(self) -> str:
        """``megatron@0.16``; the bare name where there are no versions."""
        return f"{self.name}@{self.version}" if self.version else self.name

    @property
    def shape(self) -> Shape:
        """What all its layouts have in common."""
        shape = Shape()
        for rule in self.rules:
            shape |= rule.shape
        return shape

    def rule_id(self, rule: Rule) -> str:
        """The rule's name among those of all targets."""
        return rule.id if rule.id.startswith("pin.") else f"{self.name}.{rule.id}"

    def violations(self, problem: Problem, layout: Layout) -> tuple[Violation, ...]:
        """Everything that stands in the way of executing a legal layout; names the rules."""
        return tuple(
            replace(found, rule=f"{found.rule} [{self.rule_id(rule)}]")
            for rule in self.rules
            for found in rule.check(problem, layout)
        )

    def broken_by(self, problem: Problem, option: StageOption) -> str | None:
        """Name of the first rule that leaves a stage option out; None when it stays."""
        return next(
            (
                self.rule_id(rule)
                for rule in self.rules
                if rule.keeps is not None and not rule.keeps(problem, option)
            ),
            None,
        )

    def allows(self, problem: Problem, layout: Layout) -> bool:
        """Whether it executes a layout of options that it keeps."""
        return next(self._broken(problem, layout), None) is None

    def _broken(self, problem: Problem, layout: Layout) -> Iterator[Violation]:
        for rule in self.rules:
            if rule.keeps is None:
                yield from rule.check(problem, layout)
