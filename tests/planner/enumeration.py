"""Every layout of a small space by plain loops. Shares no code with the search.

The only rules applied are those that define the space: all layers in order, at most so many
stages and shapes, equal sequences per micro-batch along a pipeline, equal ZeRO stages where
pipelines share a layer, chips used at most once, the whole batch.
"""

from collections.abc import Iterator
from itertools import combinations

from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from costmodel.problem import Problem
from planner.space import Space

Shape = tuple[tuple[StageOption, int, int], ...]


def option_sequences(
    options: tuple[StageOption, ...], length: int
) -> Iterator[tuple[StageOption, ...]]:
    if length == 0:
        yield ()
        return
    for head in options:
        for tail in option_sequences(options, length - 1):
            yield (head, *tail)


def shapes(problem: Problem, space: Space) -> Iterator[Shape]:
    layers = problem.model.num_layers
    for length in range(1, min(layers, space.max_stages) + 1):
        for sequence in option_sequences(space.options, length):
            if len({o.micro_batch_size * o.replicas for o in sequence}) > 1:
                continue
            for inner in combinations(range(1, layers), length - 1):
                edges = (0, *inner, layers)
                yield tuple((o, edges[i], edges[i + 1]) for i, o in enumerate(sequence))


def chips_of(shape: Shape, pool: str) -> int:
    return sum(o.tp * o.cp * o.replicas for o, _, _ in shape if o.pool == pool)


def pipeline(shape: Shape, microbatches: int) -> Pipeline:
    last = len(shape) - 1
    stages = tuple(
        Stage(option=o, chunks=((a, b),), embedding=i == 0, head=i == last)
        for i, (o, a, b) in enumerate(shape)
    )
    return Pipeline(stages=stages, microbatches=microbatches)


def zero_differs(chosen: list[Shape], layers: int) -> bool:
    """Whether two stages that hold the same layer have different ZeRO stages."""
    for layer in range(layers):
        if len({o.zero for shape in chosen for o, a, b in shape if a <= layer < b}) > 1:
            return True
    return False


def layouts(problem: Problem, space: Space) -> Iterator[Layout]:
    """Layouts as multisets: pipelines in a fixed order, every copy written out."""
    room = {p.name: p.num_chips for p in problem.cluster.pools}
    items = [
        (shape, m)
        for shape in shapes(problem, space)
        if all(chips_of(shape, name) <= n for name, n in room.items())
        for m in range(1, problem.job.global_batch_size + 1)
    ]

    def extend(start: int, chosen: list[tuple[Shape, int]], left: int) -> Iterator[Layout]:
        if left == 0:
            if zero_differs([shape for shape, _ in chosen], problem.model.num_layers):
                return
            yield Layout(pipelines=tuple(pipeline(shape, m) for shape, m in chosen))
            return
        for k in range(start, len(items)):
            shape, m = items[k]
            option = shape[0][0]
            need = m * option.micro_batch_size * option.replicas
            more = [*chosen, items[k]]
            if need > left or len({s for s, _ in more}) > space.template_limit:
                continue
            used = {name: sum(chips_of(s, name) for s, _ in more) for name in room}
            if any(used[name] > n for name, n in room.items()):
                continue
            yield from extend(k, more, left - need)

    yield from extend(0, [], problem.job.global_batch_size)
