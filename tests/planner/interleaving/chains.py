"""Every interleaved chain of one set of degrees by plain loops; shares no code with its search."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, groupby, product

from costmodel.layout.values import Layout, Pipeline, Schedule, Stage, StageOption
from costmodel.problem import Problem
from planner.space import Space


def alike(options: tuple[StageOption, ...]) -> bool:
    return len({replace(option, pool="") for option in options}) == 1


def chains_of_options(space: Space, depth: int) -> Iterator[tuple[StageOption, ...]]:
    for options in product(space.options, repeat=depth):
        runs = [name for name, _ in groupby(option.pool for option in options)]
        if alike(options) and options[0].zero <= 1 and len(runs) == len(set(runs)):
            yield options


def copies_of(problem: Problem, options: tuple[StageOption, ...]) -> Iterator[tuple[int, int]]:
    samples = options[0].micro_batch_size * options[0].replicas
    batch, depth = problem.job.global_batch_size, len(options)
    for count in range(1, batch + 1):
        used = {
            p.name: count * sum(o.num_chips for o in options if o.pool == p.name)
            for p in problem.cluster.pools
        }
        fits = all(used[p.name] <= p.num_chips for p in problem.cluster.pools)
        if fits and batch % (count * samples) == 0 and batch // (count * samples) % depth == 0:
            yield count, batch // (count * samples)


def interleaved_layouts(problem: Problem, space: Space) -> Iterator[Layout]:
    layers = problem.model.num_layers
    for depth in range(2, min(space.max_stages, layers // 2) + 1):
        for options in chains_of_options(space, depth):
            for count, microbatches in copies_of(problem, options):
                for v in range(2, layers // depth + 1):
                    for inner in combinations(range(1, layers), depth * v - 1):
                        stages = chunked(options, (0, *inner, layers))
                        pipeline = Pipeline(stages=stages, microbatches=microbatches, count=count)
                        schedule = Schedule(kind="interleaved", virtual_stages=v)
                        yield Layout(pipelines=(pipeline,), schedule=schedule)


def chunked(options: tuple[StageOption, ...], cuts: tuple[int, ...]) -> tuple[Stage, ...]:
    depth = len(options)
    runs = [(cuts[c], cuts[c + 1]) for c in range(len(cuts) - 1)]
    return tuple(
        Stage(
            option=option,
            chunks=tuple(run for c, run in enumerate(runs) if c % depth == i),
            embedding=i == 0,
            head=i == depth - 1,
        )
        for i, option in enumerate(options)
    )
