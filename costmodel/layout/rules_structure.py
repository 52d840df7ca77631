"""Rules on what the stages of a pipeline hold: every layer once, both ends, MTP, chunks."""

from collections.abc import Iterator

from costmodel.errors import UnknownNameError, Violation
from costmodel.layout.rule_tools import Place, advice, alternatives, places
from costmodel.layout.split import balanced, described
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from costmodel.schedules.kind import Refusal, Route
from costmodel.schedules.passes import line, routes_of
from costmodel.schedules.registry import schedules


def not_empty(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """There is a pipeline, every pipeline has a stage and every stage a chunk."""
    del problem
    fix = "describe at least one"
    if not layout.pipelines:
        yield Violation(field="/pipelines", value=[], rule="must hold a pipeline", fix=fix)
    for d, pipeline in enumerate(layout.pipelines):
        if not pipeline.stages:
            yield Violation(
                field=f"/pipelines/{d}/stages", value=[], rule="must hold a stage", fix=fix
            )
    for place in places(layout):
        if not place.stage.chunks:
            rule = "must hold a layer range"
            yield place.broken("chunks", rule, "write [[first, last + 1]]", [])


def ways(layout: Layout, pipeline: int) -> tuple[Route, ...]:
    """The ways that micro-batches take; of a schedule that does not exist, or does not run with
    these stages, the plain one."""
    stages = layout.pipelines[pipeline].stages
    depth, chunks = len(stages), max((len(stage.chunks) for stage in stages), default=0)
    known = schedules().get(layout.schedule.kind)
    if known is None or _refused(layout, pipeline, "stages"):
        return line(depth, chunks)
    return routes_of(known, depth, chunks)


def _refused(layout: Layout, pipeline: int, field: str) -> Refusal | None:
    """What the schedule has against the pipeline's stages or micro-batches."""
    known, own = schedules().get(layout.schedule.kind), layout.pipelines[pipeline]
    if known is None or known.program is None or not own.stages:
        return None
    refusal = known.program.refusal(len(own.stages), own.microbatches)
    return refusal if refusal and refusal.field == field else None


def virtual_order(layout: Layout, pipeline: int) -> Iterator[list[tuple[Place, int]]]:
    """Of every way the chunks in the order in which a micro-batch visits them: (place, chunk)."""
    own = [place for place in places(layout) if place.pipeline == pipeline]
    for way in ways(layout, pipeline):
        visited = [(own[stage], nth) for stage, nth in way]
        yield [(place, nth) for place, nth in visited if nth < len(place.stage.chunks)]


def end_stages(layout: Layout, pipeline: int) -> tuple[frozenset[int], frozenset[int]]:
    """The stages on which a way begins, and those on which one ends."""
    found = [way for way in ways(layout, pipeline) if way]
    return frozenset(w[0][0] for w in found), frozenset(w[-1][0] for w in found)


def layers_once_in_order(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Chunks follow each other from layer 0 to the last one, without gap or overlap."""
    for d in range(len(layout.pipelines)):
        for visited in virtual_order(layout, d):
            yield from _followed(problem, visited)


def _followed(problem: Problem, visited: list[tuple[Place, int]]) -> Iterator[Violation]:
    """The faults of one way through the layers."""
    total, expected, last = problem.model.num_layers, 0, None
    for place, v in visited:
        start, stop = place.stage.chunks[v]
        if start != expected or stop < start:
            rule = f"must start at layer {expected}, where the stage before it ends"
            fix = f"write [{expected}, {max(stop, expected)}] and move the stages after it"
            yield place.broken("chunks", rule, fix, [start, stop])
        expected, last = max(start, stop), place
    if last is not None and expected != total:
        even = described(balanced(total, len(visited)))
        yield last.broken(
            "chunks",
            f"must end at {total}, as every pipeline holds the whole {problem.model.name}",
            f"spread the layers as {even} (stages x layers, in any order), or unevenly",
            [list(chunk) for chunk in last.stage.chunks],
        )


def no_empty_stage(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Every chunk holds a layer, or else the embedding, the head or MTP."""
    del problem
    for place in places(layout):
        stage, last = place.stage, len(place.stage.chunks) - 1
        for v, (start, stop) in enumerate(stage.chunks):
            at_end = v == last and (stage.head or stage.mtp > 0)
            if start != stop or at_end or (v == 0 and stage.embedding):
                continue
            rule = "must hold a layer, the embedding, the head or MTP"
            fix = "give the stage a layer or use fewer stages"
            yield place.broken("chunks", rule, fix, [start, stop])


def embedding_first(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """The embedding is on the first stage and on no other; on the last too if ways begin there."""
    del problem
    for place in places(layout):
        wanted = place.index in end_stages(layout, place.pipeline)[0]
        if place.stage.embedding != wanted:
            rule = f"must be true on {_named(layout, place, 0)} and on no other"
            yield place.broken("embedding", rule, f"write {str(wanted).lower()}", not wanted)


def head_last(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """The head is on the stage where the layers end and on no other."""
    del problem
    for place in places(layout):
        wanted = place.index in end_stages(layout, place.pipeline)[1]
        if place.stage.head != wanted:
            rule = f"must be true on {_named(layout, place, 1)} and on no other"
            yield place.broken("head", rule, f"write {str(wanted).lower()}", not wanted)


def _named(layout: Layout, place: Place, end: int) -> str:
    """The stages on which the ways begin (0) or end (1), in words."""
    found = sorted(end_stages(layout, place.pipeline)[end])
    last = len(layout.pipelines[place.pipeline].stages) - 1
    words = ["the first" if i == 0 else "the last" if i == last else str(i) for i in found]
    return f"{' and '.join(words)} stage"


def _in_a_line(layout: Layout) -> bool:
    """Whether micro-batches go once through the stages in their order."""
    known = schedules().get(layout.schedule.kind)
    return known is None or known.program is None or known.program.chunks == 1


def mtp_on_ends(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Where chunks lie there and back, MTP is on the stages on which the layers end."""
    depth = len(problem.model.mtp)
    for place in () if _in_a_line(layout) else places(layout):
        wanted = depth * (place.index in end_stages(layout, place.pipeline)[1])
        if place.stage.mtp != wanted:
            rule = f"must be {wanted} with the schedule {layout.schedule.kind}"
            yield place.broken("mtp", rule, f"write mtp {wanted}", place.stage.mtp)


def mtp_complete(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Every pipeline holds the model's multi-token-prediction depth."""
    depth = len(problem.model.mtp)
    for d, pipeline in enumerate(layout.pipelines if _in_a_line(layout) else ()):
        held = sum(stage.mtp for stage in pipeline.stages)
        if pipeline.stages and held != depth:
            index = len(pipeline.stages) - 1
            place = Place(pipeline=d, index=index, stage=pipeline.stages[index])
            rule = f"must add up to the model's {depth} multi-token-prediction blocks"
            yield place.broken("mtp", rule, f"write mtp {depth} on the last stage", held)


def mtp_after_layers(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Multi-token prediction runs after the last layer."""
    for place in places(layout) if _in_a_line(layout) else ():
        later = layout.pipelines[place.pipeline].stages[place.index + 1 :]
        before_layers = any(s.chunks and s.chunks[-1][1] > s.chunks[-1][0] for s in later)
        if place.stage.mtp > 0 and before_layers:
            depth = len(problem.model.mtp)
            rule = "must be 0 before the last layer"
            yield place.broken("mtp", rule, f"write mtp {depth} on the last stage", place.stage.mtp)


def mtp_together(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """All multi-token prediction is on one stage: it is priced as a whole."""
    depth = len(problem.model.mtp)
    for d in range(len(layout.pipelines) if _in_a_line(layout) else 0):
        holders = [p for p in places(layout) if p.pipeline == d and p.stage.mtp > 0]
        for place in holders[:-1]:
            rule = "must be on one stage"
            fix = f"write mtp 0 here and mtp {depth} in {holders[-1].path}"
            yield place.broken("mtp", rule, fix, place.stage.mtp)


def known_schedule(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """The schedule is registered and has so many chunks a stage."""
    del problem
    kind, virtual = layout.schedule.kind, layout.schedule.virtual_stages
    if kind not in schedules():
        error = UnknownNameError(
            kind="schedule", name=kind, known=schedules(), field="/schedule/kind"
        )
        yield from error.violations
        return
    program = schedules()[kind].program
    if program is not None and virtual != program.chunks:
        rule = f"must be {program.chunks} with the schedule {kind}"
        fix = f"write {program.chunks}"
        yield Violation(field="/schedule/virtual_stages", value=virtual, rule=rule, fix=fix)
    elif program is None and virtual > 1 and schedules()[kind].interleaving is None:
        able = [name for name, known in schedules().items() if known.interleaving is not None]
        rule = f"must be 1 with the schedule {kind}"
        fix = f"write 1 and one chunk a stage, or name the schedule {alternatives(able)}"
        yield Violation(field="/schedule/virtual_stages", value=virtual, rule=rule, fix=fix)


def chunks_match_schedule(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Every stage has as many chunks as the schedule has virtual stages."""
    del problem
    virtual = layout.schedule.virtual_stages
    for place in places(layout):
        chunks = place.stage.chunks
        if chunks and len(chunks) != virtual:
            rule = f"must be {virtual} ranges, one for each virtual stage"
            fix = f"write {virtual}, or set virtual_stages to {len(chunks)}"
            yield place.broken("chunks", rule, fix, [list(chunk) for chunk in chunks])


def whole_groups(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Interleaved stages take micro-batches in groups of one for each stage."""
    del problem
    for d, pipeline in enumerate(layout.pipelines):
        size, microbatches = len(pipeline.stages), pipeline.microbatches
        if _in_a_line(layout) and layout.schedule.virtual_stages > 1 and microbatches % size:
            groups = microbatches // size
            legal = [size * k for k in (groups, groups + 1) if k]
            yield Violation(
                field=f"/pipelines/{d}/microbatches",
                value=microbatches,
                rule=f"must be a multiple of the {size} stages when they are interleaved",
                fix=f"{advice('microbatches', microbatches, legal)}, or the schedule 1f1b",
            )


def schedule_takes(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """The schedule runs with so many stages and micro-batches."""
    del problem
    for d, pipeline in enumerate(layout.pipelines):
        for field, value in (
            ("stages", len(pipeline.stages)),
            ("microbatches", pipeline.microbatches),
        ):
            refusal = _refused(layout, d, field)
            if refusal is not None:
                rule = f"{refusal.rule}, with the schedule {layout.schedule.kind}"
                fix = f"{refusal.fix}, or the schedule 1f1b"
                yield Violation(field=f"/pipelines/{d}/{field}", value=value, rule=rule, fix=fix)


STRUCTURE_RULES = (
    not_empty,
    layers_once_in_order,
    no_empty_stage,
    embedding_first,
    head_last,
    mtp_complete,
    mtp_after_layers,
    mtp_together,
    known_schedule,
    chunks_match_schedule,
    whole_groups,
    schedule_takes,
    mtp_on_ends,
)
