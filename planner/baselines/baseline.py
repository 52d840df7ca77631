"""A baseline: a rule or a simple search that proposes one layout, scored as any other."""

from collections.abc import Callable
from dataclasses import dataclass

from costmodel.layout.values import Layout
from costmodel.problem import Problem
from planner.instance import Draft, Instance, layout_of
from planner.watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a baseline may look at.

    instance: every legal layout, priced. given: the user's own layout, if there is one.
    """

    problem: Problem
    instance: Instance
    watch: Watch
    given: Layout | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRule:
    """A simple planner. order: place in tables. always: cheap enough to go with every plan.

    propose: its layout; None when it finds none that fits.
    applies: whether it makes sense here (several pools, a layout given).
    source: where the rule was read.
    """

    name: str
    sentence: str
    source: str
    order: int
    propose: Callable[[Setting], Layout | None]
    applies: Callable[[Setting], bool] = lambda _: True
    always: bool = False


def several_pools(setting: Setting) -> bool:
    """Whether there is a choice of pools."""
    return len(setting.instance.chips) > 1


def best_of(instance: Instance, drafts: list[Draft]) -> Layout | None:
    """The fastest of some layouts; None when none fits."""
    layouts = [layout_of(instance, draft) for draft in drafts]
    timed = [(instance.evaluate(layout).step_time_s, k) for k, layout in enumerate(layouts)]
    fitting = [pair for pair in timed if pair[0] < float("inf")]
    return layouts[min(fitting)[1]] if fitting else None
