"""The layout that the user has today."""

from costmodel.layout.values import Layout
from planner.baselines.baseline import BaselineRule, Setting


def propose(setting: Setting) -> Layout | None:
    """The layout as it was given."""
    return setting.given


def applies(setting: Setting) -> bool:
    """Whether one was given."""
    return setting.given is not None


BASELINE = BaselineRule(
    name="your layout",
    sentence="The layout given with --layout.",
    source="the user",
    order=7,
    propose=propose,
    applies=applies,
    always=True,
)
