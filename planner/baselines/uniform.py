"""Equal degrees and even layers on all chips."""

from costmodel.layout.values import Layout
from planner.baselines.baseline import BaselineRule, Setting
from planner.instance import layout_of
from planner.uniform import best_uniform


def propose(setting: Setting) -> Layout | None:
    """The best of the grid of degrees, ranks numbered as Megatron does."""
    found = best_uniform(setting.instance)
    return None if found is None else layout_of(setting.instance, found[0])


BASELINE = BaselineRule(
    name="uniform",
    sentence="Equal degrees and even layers on all chips, ranks numbered as Megatron does.",
    source="github.com/NVIDIA/Megatron-LM parallel_state.py",
    order=0,
    propose=propose,
    always=True,
)
