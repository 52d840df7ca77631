"""The 90 % interval around a predicted step time."""

from bisect import bisect_right

from costmodel.evaluation import Evaluation
from costmodel.software.read import profile_names, width_document

TUNED_MFU = 0.25
"""From this predicted utilisation a step counts as bound by the device; below, by overheads."""

REGIME_EDGES = (0.15, TUNED_MFU, 0.4)
"""Predicted utilisations between which a regime lies, with a width of its own."""


def regime(mfu: float) -> int:
    """Which regime a predicted utilisation is in: 0 for the lowest."""
    return bisect_right(REGIME_EDGES, mfu)


def interval(
    evaluation: Evaluation, *, stack: str = "", class_defaults: bool = False
) -> tuple[float, float]:
    """Seconds between which 90 % of measured steps lie, given this prediction.

    stack: the software profile that was used, '' for none. class_defaults: whether numbers of a
    chip or link were nobody's measurement.
    """
    share = relative_half_width(evaluation.mfu, stack=stack, class_defaults=class_defaults)
    seconds = evaluation.step_time_s
    return seconds / (1.0 + share), seconds * (1.0 + share)


def relative_half_width(mfu: float, *, stack: str = "", class_defaults: bool = False) -> float:
    """h of the interval ``[T / (1 + h), T (1 + h)]`` around a predicted time T."""
    document = width_document()
    at, stacks = regime(mfu), document["stacks"]
    own = stacks[stack][at] if stack in stacks else None
    known = document["known" if stack in profile_names() else "unknown"]
    width = float(known[at] if own is None else own)
    return width * float(document["class_defaults"]) if class_defaults else width
