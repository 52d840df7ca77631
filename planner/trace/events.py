"""The kinds of trace events that are used, as plain data. Times are whole nanoseconds here."""

from typing import Any

Event = dict[str, Any]

NS = 1e9
STEP, FIRST_STAGE = 1, 2
"""Process of the whole plan and of stage 0. Process and thread 0 are a kernel's idle task."""

LANES = 1000
"""Threads set aside for a process; thread numbers are of one process only, as in an operating
system, since Perfetto names threads by number alone."""


def ns(seconds: float) -> int:
    """Whole nanoseconds: slices that touch keep touching."""
    return round(seconds * NS)


def _us(nanoseconds: int) -> float:
    return nanoseconds / 1000.0


def process_of(stage: int) -> int:
    """The process of a stage."""
    return FIRST_STAGE + stage


def _thread(process: int, lane: int) -> int:
    return LANES * process + lane


def slice_(
    name: str, kind: str, where: tuple[int, int], span: tuple[int, int], args: Event
) -> Event:
    """Complete event (``X``) on ``where`` (process, lane) from start to end."""
    start, end = span
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": _us(start),
        "dur": _us(end - start),
        "pid": where[0],
        "tid": _thread(*where),
        "args": args,
    }


def counter(name: str, process: int, at: int, values: Event) -> Event:
    """Counter event (``C``)."""
    where = {"pid": process, "tid": _thread(process, 1)}
    return {"name": name, "ph": "C", "ts": _us(at), **where, "args": values}


def flow(number: int, sent: tuple[int, int, int], received: tuple[int, int, int]) -> list[Event]:
    """An arrow (``s``, ``f``) between two slices, each given as process, lane and a moment."""
    common = {"name": "hand-over", "cat": "hand-over", "id": number}

    def end(at: tuple[int, int, int]) -> Event:
        return {"ts": _us(at[2]), "pid": at[0], "tid": _thread(*at[:2])}

    return [common | {"ph": "s"} | end(sent), common | {"ph": "f", "bp": "e"} | end(received)]


def process(number: int, name: str) -> list[Event]:
    """Name and place of a process (``M``)."""
    return [
        _metadata("process_name", number, 1, {"name": name}),
        _metadata("process_sort_index", number, 1, {"sort_index": number}),
    ]


def lane(number: int, within: int, name: str) -> list[Event]:
    """Name and place of a lane of a process (``M``)."""
    return [
        _metadata("thread_name", within, number, {"name": name}),
        _metadata("thread_sort_index", within, number, {"sort_index": number}),
    ]


def _metadata(name: str, process_number: int, number: int, args: Event) -> Event:
    where = {"pid": process_number, "tid": _thread(process_number, number)}
    return {"name": name, "ph": "M", **where, "args": args}
