"""The smallest changes after which a layout that does not fit would fit."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from costmodel.evaluation import Evaluation
from costmodel.job import RECOMPUTE_MODES
from costmodel.layout.rules import violations
from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from costmodel.problem import Problem
from costmodel.step import evaluate

MOST_CHANGES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of a layout and what the changed layout would need.

    missing_bytes: on the chip that lacks most; 0 when it fits. step_time_s: of the changed layout.
    """

    text: str
    layout: Layout
    missing_bytes: float
    step_time_s: float

    @property
    def fits(self) -> bool:
        """Whether the changed layout fits."""
        return self.missing_bytes <= 0


def smallest_changes(problem: Problem, evaluation: Evaluation) -> tuple[Change, ...]:
    """Single changes that make the layout fit, fastest first; else two or more; else the nearest.

    Tried one at a time: recomputing more on the stages that do not fit, sharding more (ZeRO),
    smaller micro-batches, wider tp on the same chips; then all of recomputing, sharding and
    micro-batches together. When nothing helps the one that leaves least missing is returned.
    """
    tried: list[Change] = []
    for candidates in (_single(evaluation), _combined(evaluation)):
        found = [_change(problem, text, layout) for text, layout in candidates]
        tried += [change for change in found if change is not None]
        fitting = sorted((c for c in tried if c.fits), key=lambda c: (c.step_time_s, c.text))
        if fitting:
            return tuple(fitting[:MOST_CHANGES])
    return tuple(sorted(tried, key=lambda c: (c.missing_bytes, c.text))[:1])


def _change(problem: Problem, text: str, layout: Layout) -> Change | None:
    if violations(problem, layout):
        return None
    changed = evaluate(problem, layout)
    return Change(
        text=text,
        layout=layout,
        missing_bytes=changed.missing_bytes,
        step_time_s=changed.step_time_s,
    )


Candidate = tuple[str, Layout]


def _single(evaluation: Evaluation) -> Iterator[Candidate]:
    layout = evaluation.layout
    for mode in RECOMPUTE_MODES[1:]:
        yield f"recompute {mode} on {_tight_names(evaluation)}", _recomputing(evaluation, mode)
    for zero in (1, 2, 3):
        yield f"zero {zero} on all stages", _sharding(layout, zero)
    size = max(s.option.micro_batch_size for p in layout.pipelines for s in p.stages)
    while size > 1:
        size //= 2
        yield f"micro-batches of {size}", _smaller_batches(layout, size)
    for times in (2, 4, 8):
        yield f"{times} times the tp on the same chips", _wider(layout, times)


def _combined(evaluation: Evaluation) -> Iterator[Candidate]:
    recomputing = _recomputing(evaluation, "full")
    small = _smaller_batches(recomputing, 1)
    for zero in (1, 2, 3):
        yield f"recompute full and zero {zero}", _sharding(recomputing, zero)
        yield f"recompute full, zero {zero} and micro-batches of 1", _sharding(small, zero)
    for times in (2, 4, 8):
        yield f"recompute full and {times} times the tp", _wider(recomputing, times)
        text = f"recompute full, zero 3, micro-batches of 1 and {times} times the tp"
        yield text, _sharding(_wider(small, times), 3)


def _tight_names(evaluation: Evaluation) -> str:
    stages = [s for pipeline in evaluation.stages for s in pipeline]
    tight = [
        f"{d}.{i}"
        for d, pipeline in enumerate(evaluation.stages)
        for i, stage in enumerate(pipeline)
        if stage.memory.missing > 0
    ]
    if len(tight) == len(stages):
        return "all stages"
    return f"stage{'s' * (len(tight) > 1)} {', '.join(tight)} (pipeline.stage)"


def _recomputing(evaluation: Evaluation, mode: str) -> Layout:
    """More recomputation on the stages that do not fit."""
    tight = {
        (d, i)
        for d, pipeline in enumerate(evaluation.stages)
        for i, stage in enumerate(pipeline)
        if stage.memory.missing > 0
    }
    level = RECOMPUTE_MODES.index

    def more(index: tuple[int, int], option: StageOption) -> StageOption:
        wanted = index in tight and level(option.recompute) < level(mode)
        return replace(option, recompute=mode) if wanted else option

    layout = evaluation.layout
    return replace(
        layout,
        pipelines=tuple(
            replace(
                p,
                stages=tuple(
                    replace(s, option=more((d, i), s.option)) for i, s in enumerate(p.stages)
                ),
            )
            for d, p in enumerate(layout.pipelines)
        ),
    )


def _sharding(layout: Layout, zero: int) -> Layout:
    """At least this ZeRO stage everywhere."""
    return _mapped(layout, lambda o: replace(o, zero=max(o.zero, zero)))


def _smaller_batches(layout: Layout, size: int) -> Layout:
    """Micro-batches of at most so many sequences, and more of them."""

    def smaller(pipeline: Pipeline) -> Pipeline:
        biggest = max(s.option.micro_batch_size for s in pipeline.stages)
        times = max(1, biggest // size)
        shrunk = tuple(
            _with_option(s, micro_batch_size=max(1, s.option.micro_batch_size // times))
            for s in pipeline.stages
        )
        return replace(pipeline, stages=shrunk, microbatches=pipeline.microbatches * times)

    return replace(layout, pipelines=tuple(smaller(p) for p in layout.pipelines))


def _wider(layout: Layout, times: int) -> Layout:
    """So many times the tp: fewer copies of each pipeline, or fewer replicas in each stage."""

    def wider(pipeline: Pipeline) -> Pipeline:
        stages = tuple(
            _with_option(s, tp=s.option.tp * times, sequence_parallel=True) for s in pipeline.stages
        )
        microbatches = pipeline.microbatches * times
        if pipeline.count % times == 0:
            count = pipeline.count // times
            return Pipeline(stages=stages, count=count, microbatches=microbatches)
        if all(s.option.replicas % times == 0 for s in stages):
            stages = tuple(_with_option(s, replicas=s.option.replicas // times) for s in stages)
            return replace(pipeline, stages=stages, microbatches=microbatches)
        return replace(pipeline, stages=stages)

    return replace(layout, pipelines=tuple(wider(p) for p in layout.pipelines))


def _mapped(layout: Layout, change: Callable[[StageOption], StageOption]) -> Layout:
    return replace(
        layout,
        pipelines=tuple(
            replace(p, stages=tuple(replace(s, option=change(s.option)) for s in p.stages))
            for p in layout.pipelines
        ),
    )


def _with_option(stage: Stage, **changes: int) -> Stage:
    return replace(stage, option=replace(stage.option, **changes))
