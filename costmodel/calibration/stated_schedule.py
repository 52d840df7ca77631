"""The schedule that a case runs under, and the ways through its chunks."""

from costmodel.calibration.case import Section, UnscorableError
from costmodel.layout.values import Schedule
from costmodel.schedules.kind import Route
from costmodel.schedules.passes import line
from costmodel.schedules.registry import schedule

STATED = {
    "dualpipev": "dualpipev",
    "dualpipe": "dualpipe",
    "zbv": "zbv",
    "zerobubblev": "zbv",
    "zbh1": "zero-bubble",
    "zb1p": "zero-bubble",
    "zerobubble": "zero-bubble",
}
"""What names of schedules begin with, without signs between words; longer ones first."""

PLAIN = ("1f1b", "interleaved")
"""What names of 1F1B begin with, interleaved or not: the virtual stages say which."""

Ways = tuple[Route, ...]


def schedule_of(parallel: Section, microbatches: int) -> tuple[Schedule, Ways]:
    """The stated one; 1F1B, interleaved where there are virtual stages, if the case says no other.

    Raises UnscorableError where the schedule does not run with these stages and micro-batches.
    """
    pp = parallel.size("pp") or 1
    v = max(1, parallel.size("vp") or 1) if pp > 1 else 1
    words = _joined(parallel.word("schedule"))
    name = next((kind for start, kind in STATED.items() if words.startswith(start)), None)
    program = schedule(name).program if name is not None and pp > 1 else None
    if name is None or program is None:
        if v > 1 and microbatches % pp:
            raise UnscorableError("micro-batches are not a multiple of pp, as interleaving needs")
        kind = "interleaved" if v > 1 else "1f1b"
        return Schedule(kind=kind, virtual_stages=v), line(pp, v)
    refusal = program.refusal(pp, microbatches)
    if refusal is not None:
        raise UnscorableError(f"{name}: {refusal.field} {refusal.rule}")
    return Schedule(kind=name, virtual_stages=program.chunks), program.routes(pp)


def is_known_schedule(value: object) -> bool:
    """Whether this names a schedule, or is not stated."""
    if value is None:
        return True
    name = _joined(value) if isinstance(value, str) else "?"
    return not name or name.startswith((*STATED, *PLAIN))


def _joined(name: str) -> str:
    """Small letters and digits alone."""
    return "".join(c for c in name.lower() if c.isalnum())
