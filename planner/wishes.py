"""What is asked of a plan beside model, cluster and job."""

from dataclasses import dataclass

from costmodel.layout.values import Layout
from planner.pins import NO_PINS, Pins


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Further wishes.

    every_baseline: compare with all baselines, not only those that go with every plan.
    given: a layout to compare with. pins: what is fixed. prove_s: seconds for a better bound, after
    the search.
    """

    every_baseline: bool = False
    given: Layout | None = None
    pins: Pins = NO_PINS
    prove_s: float = 0.0


NO_WISHES = Wishes()
