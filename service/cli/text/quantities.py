"""Numbers for people."""

from rich.text import Text

GIB = 2**30

_TIME_UNITS = ((60.0, 1.0, "s"), (1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "us"))
_COUNT_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))
_EIGHTHS = " ▏▎▍▌▋▊▉"


def seconds(value: float) -> str:
    """A duration with three digits that matter."""
    for least, factor, unit in _TIME_UNITS:
        if abs(value) >= least:
            return f"{value * factor:.3g} {unit}" if value < 1000 else f"{value:,.0f} s"
    return "0 s" if value == 0 else f"{value * 1e9:.3g} ns"


def gibibytes(value: float) -> str:
    """A memory size in GiB."""
    return f"{value / GIB:.1f} GiB"


def count(value: float) -> str:
    """A large count, as in `70.6 B`."""
    for least, letter in _COUNT_UNITS:
        if value >= least:
            return f"{value / least:.4g} {letter}"
    return f"{value:.4g}"


def percent(value: float) -> str:
    """A share."""
    return f"{100 * value:.1f} %"


def bar(share: float, *, width: int = 12) -> str:
    """A horizontal bar of eighths; fuller than full is cut."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def seconds_pair(first: float, second: float) -> str:
    """Two durations in the unit of the longer one, as in `40.8/83.8 ms`."""
    longer = max(abs(first), abs(second))
    units = [(factor, unit) for least, factor, unit in _TIME_UNITS if longer >= least]
    factor, unit = (units or [_TIME_UNITS[-1][1:]])[0]
    numbers = (value * factor for value in (first, second))
    return "/".join(f"{n:.3g}" if n < 1000 else f"{n:,.0f}" for n in numbers) + f" {unit}"


def gibibyte_number(value: float) -> str:
    """A memory size in GiB where the unit is said elsewhere."""
    return f"{value / GIB:.1f}"


def memory_text(used: float, capacity: float) -> Text:
    """Used of usable GiB: green with room, yellow when tight, red when over."""
    share = used / capacity if capacity else float("inf")
    style = "red" if share > 1 else "yellow" if share > 0.95 else "green"
    return Text(f"{gibibyte_number(used)}/{gibibyte_number(capacity)}", style=style)
