"""Event simulation of any schedule in plain Python, driven by the order of passes alone."""

from costmodel.schedules.kind import FloatArray, ScheduleKind


def event_simulation(
    kind: ScheduleKind,
    forward_s: FloatArray,
    backward_s: FloatArray,
    p2p_forward_s: FloatArray,
    p2p_backward_s: FloatArray,
    microbatches: int,
) -> tuple[float, list[float]]:
    """Makespan and end of each stage: repeat until every stage has run its whole list."""
    p = len(forward_s)
    todo = [list(kind.order(p, i, microbatches)) for i in range(p)]
    clock = [0.0] * p
    ended: dict[tuple[bool, int, int], float] = {}
    while any(todo):
        for i in range(p):
            while todo[i]:
                is_backward, k = todo[i][0]
                ready = 0.0
                if is_backward and i < p - 1:
                    if (True, i + 1, k) not in ended:
                        break
                    ready = ended[True, i + 1, k] + float(p2p_backward_s[i])
                elif is_backward:
                    ready = ended[False, i, k]
                elif i > 0:
                    if (False, i - 1, k) not in ended:
                        break
                    ready = ended[False, i - 1, k] + float(p2p_forward_s[i - 1])
                duration = float(backward_s[i] if is_backward else forward_s[i])
                clock[i] = max(clock[i], ready) + duration
                ended[is_backward, i, k] = clock[i]
                todo[i].pop(0)
    return max(clock), clock
