"""What a case leaves open and memory decides, by one rule for all: only as far as it needs.

Of the settings that are open, experts are split over tp, then everything is sharded, then layers
recompute; each only if the layout does not fit without it. What a run measured plays no part.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from costmodel.calibration.layouts import recompute_is_open, states_recompute
from costmodel.calibration.models import Reading
from costmodel.evaluation import Evaluation
from costmodel.layout.values import Layout, Pipeline, StageOption
from costmodel.problem import Problem
from costmodel.step import evaluate

Shares = tuple[tuple[Layout, float], ...]
"""Layouts with their share of the prediction."""

OFFLOADED = "recomputation not stated: activations that do not fit go to the host, hidden"


def decided_by_memory(problem: Problem, reading: Reading, layout: Layout) -> Shares:
    """The layout, or a mix of one without and one with full recomputation."""
    how, text = reading.convention, reading.case.parallel.text("recompute")
    if "selective" in text and how.layer_recompute:
        return _mixed(layout, how.layer_recompute)
    if offloads(reading, layout):
        if not evaluate(problem, layout).fits:
            reading.assume(OFFLOADED)
        return ((layout, 1.0),)
    least = recomputing(layout, "full") if recompute_is_open(reading) else layout
    if not evaluate(problem, least).fits:
        layout = _spread(problem, reading, layout, least)
    if not recompute_is_open(reading):
        return ((layout, 1.0),)
    share = share_to_fit(problem, layout)
    if share:
        reading.assume("recomputation not stated: of as many layers as the memory needs")
    else:
        reading.assume("recomputation not stated: none, as memory suffices")
    return _mixed(layout, share)


def offloads(reading: Reading, layout: Layout) -> bool:
    """Whether activations that do not fit are taken to go to the host's memory."""
    sharded = layout.pipelines[0].stages[0].option.zero >= 3
    return sharded and reading.convention.offloads_to_fit and not states_recompute(reading)


def recomputing(layout: Layout, mode: str) -> Layout:
    """The layout with another recompute mode on every stage."""
    return _changed(layout, lambda option: replace(option, recompute=mode))


def _changed(layout: Layout, change: Callable[[StageOption], StageOption]) -> Layout:
    def changed(pipeline: Pipeline) -> Pipeline:
        stages = (replace(stage, option=change(stage.option)) for stage in pipeline.stages)
        return replace(pipeline, stages=tuple(stages))

    return replace(layout, pipelines=tuple(changed(p) for p in layout.pipelines))


def _spread(problem: Problem, reading: Reading, layout: Layout, least: Layout) -> Layout:
    """The first way of spreading what is open that fits; the layout where none does.

    least: the layout with the least memory that recomputation leaves it.
    """
    for sentence, change in _ways(reading, layout):
        if evaluate(problem, _changed(least, change)).fits:
            reading.assume(f"{sentence}, as memory needs it")
            return _changed(layout, change)
    return layout


def _ways(
    reading: Reading, layout: Layout
) -> Iterator[tuple[str, Callable[[StageOption], StageOption]]]:
    parallel, option = reading.case.parallel, layout.pipelines[0].stages[0].option
    chips = option.tp * option.cp * option.replicas
    experts = bool(reading.case.model.size("experts")) and not parallel.size("etp")
    split = experts and option.etp == 1 < option.tp and chips % (option.ep * option.tp) == 0
    keys = ("zero", "optimizer_sharding")
    open_sharding = all(parallel.values.get(key) is None for key in keys) and option.zero < 3
    if split:
        yield "experts split over tp", lambda o: replace(o, etp=o.tp)
    if open_sharding and parallel.flag("fsdp") is None:
        yield "fully sharded", lambda o: replace(o, zero=3)
        if split:
            yield "experts split over tp, fully sharded", lambda o: replace(o, etp=o.tp, zero=3)


def _mixed(layout: Layout, share: float) -> Shares:
    parts = ((recomputing(layout, "none"), 1.0 - share), (recomputing(layout, "full"), share))
    return tuple(part for part in parts if part[1] > 0.0)


def share_to_fit(problem: Problem, layout: Layout) -> float:
    """Share of the layers that has to recompute for the fullest stage to fit; 0 to 1."""
    plain = evaluate(problem, recomputing(layout, "none"))
    if plain.fits:
        return 0.0
    full = evaluate(problem, recomputing(layout, "full"))
    pairs = zip(_stages(plain), _stages(full), strict=True)
    return max(_needed_share(*pair) for pair in pairs)


def _stages(evaluation: Evaluation) -> list[tuple[float, float]]:
    """Peak and missing bytes of the stages of the first pipeline."""
    return [(stage.memory.peak, stage.memory.missing) for stage in evaluation.stages[0]]


def _needed_share(plain: tuple[float, float], full: tuple[float, float]) -> float:
    saved = plain[0] - full[0]
    return min(1.0, plain[1] / saved) if saved > 0 else 0.0
