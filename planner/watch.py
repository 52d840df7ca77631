"""The clock of a search and the record of its best layouts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

Progress = Callable[[float, float], None]
"""Called with the seconds spent and the best step time so far."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """Time since the start, whether it is over, and when the best so far was found.

    limit_s: seconds after which ``expired`` is true. record: (elapsed seconds, step time) at every
    improvement; the only thing that changes.
    """

    limit_s: float
    progress: Progress | None = None
    start_s: float = field(default_factory=monotonic)
    record: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return monotonic() - self.start_s

    def expired(self) -> bool:
        """Whether the time is over."""
        return self.elapsed_s > self.limit_s

    @property
    def best_s(self) -> float:
        """Step time of the best layout so far; infinite before the first."""
        return self.record[-1][1] if self.record else float("inf")

    def saw(self, step_time_s: float) -> None:
        """Notes a layout's step time; infinite ones and those no better are not recorded."""
        if step_time_s < self.best_s:
            self.record.append((self.elapsed_s, step_time_s))
            if self.progress is not None:
                self.progress(self.elapsed_s, step_time_s)

    def first_within(self, share: float) -> float:
        """Seconds until a layout within ``share`` of the last best was known; 0 when none was."""
        if not self.record:
            return 0.0
        goal = self.record[-1][1] * (1 + share)
        return next(at for at, seconds in self.record if seconds <= goal)
