"""Every chain of a family by plain loops; shares no code with its search."""

from collections.abc import Callable, Iterator
from itertools import groupby

from costmodel.layout.values import Layout, Pipeline
from costmodel.problem import Problem
from planner.instance import Instance
from planner.space import Space
from tests.planner.enumeration import Shape, chips_of, pipeline, shapes

Belongs = Callable[[Shape], bool]


def one_run_a_pool(shape: Shape) -> bool:
    runs = [name for name, _ in groupby(option.pool for option, _, _ in shape)]
    return len(runs) == len(set(runs))


def equal_degrees(shape: Shape) -> bool:
    first = shape[0][0]
    fields = ("tp", "cp", "ep", "etp", "replicas", "micro_batch_size", "zero", "recompute")
    alike = all(
        getattr(option, field) == getattr(first, field)
        for option, _, _ in shape
        for field in fields
    )
    return alike and first.zero <= 1 and one_run_a_pool(shape)


def chain_of_meshes(shape: Shape) -> bool:
    options = [option for option, _, _ in shape]
    sizes = {(o.pool, o.tp * o.cp * o.replicas) for o in options}
    return (
        one_run_a_pool(shape)
        and len(sizes) == len({o.pool for o in options})
        and len({o.zero for o in options}) == 1
        and options[0].zero <= 1
        and len({o.recompute == "selective" for o in options}) == 1
        and len({o.ep > 1 for o in options}) == 1
    )


def copies_of(problem: Problem, shape: Shape) -> Iterator[tuple[int, int]]:
    """Copies and micro-batches that make up the batch and fit the chips."""
    first = shape[0][0]
    samples = first.micro_batch_size * first.replicas
    batch = problem.job.global_batch_size
    for count in range(1, batch // samples + 1):
        fits = all(count * chips_of(shape, p.name) <= p.num_chips for p in problem.cluster.pools)
        if fits and batch % (count * samples) == 0:
            yield count, batch // (count * samples)


def best_seconds(problem: Problem, space: Space, instance: Instance, belongs: Belongs) -> float:
    """The least step time of all layouts of the family, as the evaluator gives it."""
    best = float("inf")
    for shape in shapes(problem, space):
        if not belongs(shape):
            continue
        for count, microbatches in copies_of(problem, shape):
            one = pipeline(shape, microbatches)
            copies = Pipeline(stages=one.stages, microbatches=microbatches, count=count)
            score = instance.evaluate(Layout(pipelines=(copies,)))
            best = min(best, score.step_time_s)
    return best
