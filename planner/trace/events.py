"""The kinds of trace events that are used, as plain data. Times are whole nanoseconds here."""

from typing import Any

Event = dict[str, Any]

NS = 1e9


def ns(seconds: float) -> int:
    """Whole nanoseconds: slices that touch keep touching."""
    return round(seconds * NS)


def _us(nanoseconds: int) -> float:
    return nanoseconds / 1000.0


def slice_(
    name: str, kind: str, where: tuple[int, int], span: tuple[int, int], args: Event
) -> Event:
    """Complete event (``X``) of thread ``where`` (process, thread) from start to end."""
    start, end = span
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": _us(start),
        "dur": _us(end - start),
        "pid": where[0],
        "tid": where[1],
        "args": args,
    }


def counter(name: str, process: int, at: int, values: Event) -> Event:
    """Counter event (``C``)."""
    return {"name": name, "ph": "C", "ts": _us(at), "pid": process, "tid": 0, "args": values}


def flow(number: int, sent: tuple[int, int, int], received: tuple[int, int, int]) -> list[Event]:
    """An arrow (``s``, ``f``) between two slices, each given as process, thread and a moment."""
    common = {"name": "hand-over", "cat": "hand-over", "id": number}
    return [
        common | {"ph": "s", "ts": _us(sent[2]), "pid": sent[0], "tid": sent[1]},
        common
        | {"ph": "f", "bp": "e", "ts": _us(received[2]), "pid": received[0], "tid": received[1]},
    ]


def process(number: int, name: str) -> list[Event]:
    """Name and place of a process (``M``)."""
    return [
        _metadata("process_name", number, 0, {"name": name}),
        _metadata("process_sort_index", number, 0, {"sort_index": number}),
    ]


def thread(number: int, within: int, name: str) -> list[Event]:
    """Name and place of a thread of a process (``M``)."""
    return [
        _metadata("thread_name", within, number, {"name": name}),
        _metadata("thread_sort_index", within, number, {"sort_index": number}),
    ]


def _metadata(name: str, process_number: int, thread_number: int, args: Event) -> Event:
    return {"name": name, "ph": "M", "pid": process_number, "tid": thread_number, "args": args}
