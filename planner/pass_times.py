"""When every forward and backward of a pipeline runs, from a schedule's order of passes."""

from dataclasses import dataclass

from costmodel.schedules.kind import FloatArray, ScheduleKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One forward or backward of one micro-batch on one stage, seconds from the start."""

    is_backward: bool
    microbatch: int
    start_s: float
    end_s: float


def pass_times(
    kind: ScheduleKind, forward_s: FloatArray, backward_s: FloatArray, microbatches: int
) -> tuple[tuple[Pass, ...], ...]:
    """Passes of every stage in execution order, hand-overs taking no time.

    A pass starts when its stage is free and its input is there; stages are visited in turn until
    none can go on.
    """
    p = len(forward_s)
    todo = [list(kind.order(p, i, microbatches)) for i in range(p)]
    done: list[list[Pass]] = [[] for _ in range(p)]
    ends: dict[tuple[bool, int, int], float] = {}
    progress = True
    while progress:
        progress = False
        for i in range(p):
            while len(done[i]) < len(todo[i]):
                is_backward, k = todo[i][len(done[i])]
                ready = _ready(ends, is_backward, i, k, p)
                if ready is None:
                    break
                start = max(ready, done[i][-1].end_s if done[i] else 0.0)
                end = start + float(backward_s[i] if is_backward else forward_s[i])
                done[i].append(
                    Pass(is_backward=is_backward, microbatch=k, start_s=start, end_s=end)
                )
                ends[is_backward, i, k] = end
                progress = True
    return tuple(tuple(row) for row in done)


def _ready(
    ends: dict[tuple[bool, int, int], float], is_backward: bool, stage: int, k: int, p: int
) -> float | None:
    """When the input of a pass is there; None when not yet known."""
    if not is_backward:
        return 0.0 if stage == 0 else ends.get((False, stage - 1, k))
    return ends.get((False, stage, k)) if stage == p - 1 else ends.get((True, stage + 1, k))
