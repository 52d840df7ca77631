"""The 90 % interval around a predicted step time."""

from costmodel.evaluation import Evaluation
from costmodel.software.read import half_width, profile_names

TUNED_MFU = 0.25
"""From this predicted utilisation a step counts as bound by the device; below, by overheads."""


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
    return half_width(
        known_stack=stack in profile_names(),
        tuned=mfu >= TUNED_MFU,
        class_defaults=class_defaults,
    )
