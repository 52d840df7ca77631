"""Rules on whole layouts: what has to be equal, and where. The searches follow their shapes."""

from collections.abc import Iterator
from itertools import pairwise

from costmodel.errors import Violation
from costmodel.layout.rule_tools import alternatives, places
from costmodel.layout.values import Layout, Pipeline
from costmodel.problem import Problem
from planner.targets.target import Rule, Shape

DASHED = {"micro_batch_size": "micro-batch", "sequence_parallel": "sequence-parallel"}


def same(field: str) -> Rule:
    """One value of an option's field on all stages."""

    def check(problem: Problem, layout: Layout) -> Iterator[Violation]:
        del problem
        first = layout.pipelines[0].stages[0].option
        for place in places(layout):
            wanted = getattr(first, field)
            if getattr(place.option, field) != wanted:
                rule = f"must be {wanted!r} as on the first stage"
                yield place.broken(field, rule, f"write {wanted!r} on every stage")

    return Rule(
        id=f"same-{DASHED.get(field, field)}",
        sentence=f"All stages have the same {field}.",
        check=check,
        shape=Shape(equal=frozenset({field})),
    )


def schedules(*kinds: str) -> Rule:
    """Which schedules there are."""

    def check(problem: Problem, layout: Layout) -> Iterator[Violation]:
        del problem
        if layout.schedule.kind not in kinds:
            yield Violation(
                field="/schedule/kind",
                value=layout.schedule.kind,
                rule=f"must be {alternatives(kinds)}",
                fix=f"write {alternatives(kinds)}",
            )

    return Rule(
        id="schedule",
        sentence=f"The schedule is {alternatives(kinds)}.",
        check=check,
        shape=Shape(schedules=frozenset(kinds)),
    )


def _same_split(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del problem
    wanted = _chunks(layout.pipelines[0])
    for d, pipeline in enumerate(layout.pipelines):
        if _chunks(pipeline) != wanted:
            yield Violation(
                field=f"/pipelines/{d}/stages",
                value=[stage.num_layers for stage in pipeline.stages],
                rule="must hold the layers of the first pipeline's stages",
                fix=f"write the chunks {[list(map(list, chunks)) for chunks in wanted]}",
            )


def _chunks(pipeline: Pipeline) -> list[tuple[tuple[int, int], ...]]:
    return [stage.chunks for stage in pipeline.stages]


SAME_SPLIT = Rule(
    id="same-split",
    sentence="All pipelines cut the layers at the same places.",
    check=_same_split,
    shape=Shape(one_split=True),
)


def _same_microbatches(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del problem
    wanted = layout.pipelines[0].microbatches
    for d, pipeline in enumerate(layout.pipelines):
        if pipeline.microbatches != wanted:
            yield Violation(
                field=f"/pipelines/{d}/microbatches",
                value=pipeline.microbatches,
                rule=f"must be {wanted} as in the first pipeline",
                fix="use a number of pipelines that divides the batch",
            )


SAME_MICROBATCHES = Rule(
    id="same-microbatches",
    sentence="All pipelines run the same number of micro-batches.",
    check=_same_microbatches,
    shape=Shape(one_split=True),
)


def _one_vendor(problem: Problem, layout: Layout) -> Iterator[Violation]:
    cluster = problem.cluster
    first = cluster.pool(layout.pipelines[0].stages[0].option.pool).chip.vendor
    for place in places(layout):
        if cluster.pool(place.option.pool).chip.vendor != first:
            rule = f"must have chips of {first} as the first stage"
            yield place.broken("pool", rule, "use the pools of one vendor")


ONE_VENDOR = Rule(
    id="one-vendor",
    sentence="All chips come from one vendor: there is one collective library.",
    check=_one_vendor,
    shape=Shape(one_vendor=True),
)


def _one_shape(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del problem
    first = layout.pipelines[0]
    for d, pipeline in enumerate(layout.pipelines):
        if pipeline.stages != first.stages:
            yield Violation(
                field=f"/pipelines/{d}",
                value=[stage.option.pool for stage in pipeline.stages],
                rule="must have the stages of the first pipeline",
                fix="use one pipeline shape, with more copies or replicas",
            )


ONE_SHAPE = Rule(
    id="one-shape",
    sentence="All pipelines have the same stages: every stage is one process mesh.",
    check=_one_shape,
    shape=Shape(one_shape=True, one_split=True),
)


def even_cuts(layers: int, stages: int) -> tuple[int, ...]:
    """Cuts of layers dealt evenly; the first stages get one of those left over each."""
    each, rest = divmod(layers, stages)
    return tuple(each * i + min(i, rest) for i in range(stages + 1))


def _even_split(problem: Problem, layout: Layout) -> Iterator[Violation]:
    layers = problem.model.num_layers
    for d, pipeline in enumerate(layout.pipelines):
        cuts = even_cuts(layers, len(pipeline.stages))
        wanted = [((a, b),) for a, b in pairwise(cuts)]
        if _chunks(pipeline) != wanted:
            yield Violation(
                field=f"/pipelines/{d}/stages",
                value=[stage.num_layers for stage in pipeline.stages],
                rule="must hold equally many layers, the first stages one more",
                fix=f"write {[b - a for ((a, b),) in wanted]} layers",
            )


EVEN_SPLIT = Rule(
    id="even-split",
    sentence="Stages hold equally many layers, the first ones one more; no list can be given.",
    check=_even_split,
    shape=Shape(even_split=True, one_split=True),
)


def _decoder_only(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del layout
    if set(problem.model.streams) != {"main"} or problem.model.boundaries:
        yield Violation(
            field="/model",
            value=problem.model.name,
            rule="must be a decoder: pipelines of encoders and decoders are not covered",
            fix="use the target any",
        )


DECODER_ONLY = Rule(
    id="decoder-only", sentence="The model is a decoder without an encoder.", check=_decoder_only
)


def _no_mtp(problem: Problem, layout: Layout) -> Iterator[Violation]:
    del layout
    if problem.model.mtp:
        yield Violation(
            field="/model",
            value=problem.model.name,
            rule="must have no multi-token-prediction blocks",
            fix="set num_nextn_predict_layers to 0 in the model's config, or use another target",
        )


NO_MTP = Rule(
    id="no-mtp", sentence="The model has no multi-token-prediction blocks.", check=_no_mtp
)
