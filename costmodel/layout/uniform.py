"""Lays a uniform layout (one line of degrees) over the pools of a cluster."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import lcm

from costmodel.errors import InputError, UnknownNameError, Violation
from costmodel.hardware.values import Pool
from costmodel.layout.notation import NotatedStage, check_notation, read_notation
from costmodel.layout.rule_tools import alternatives, divisors, nearest
from costmodel.layout.split import balanced, dealt, described, with_ends
from costmodel.layout.values import (
    NO_OFFLOAD,
    Layout,
    Pipeline,
    Schedule,
    Stage,
    StageOption,
)
from costmodel.problem import Problem
from costmodel.schedules.kind import Route
from costmodel.schedules.passes import line
from costmodel.schedules.registry import schedules

EVEN = "even"
MAX_STAGES = 4096
"""Virtual stages of one pipeline: far above any model's layers, and quick to refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """Equal degrees everywhere.

    dp: the whole data-parallel degree. mbs, recompute, schedule: None takes the job's choice, or
    1, none and 1f1b. pools: names in order, joined by ``/``; None is all. outer: ``pp`` lays
    stages over the pools one after the other, ``dp`` lays whole pipelines. first, last: layers of
    the end stages. layers: ``even`` or the layers of each (virtual) stage, joined by ``/``.
    layout: stages in Megatron's notation.
    """

    tp: int = 1
    pp: int = 1
    vp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    dp: int = 1
    mbs: int | None = None
    zero: int = 1
    recompute: str | None = None
    offload: str = NO_OFFLOAD
    sp: bool | None = None
    schedule: str | None = None
    pools: str | None = None
    outer: str = "pp"
    first: int | None = None
    last: int | None = None
    layers: str | None = None
    layout: str | None = None

    @property
    def num_chips(self) -> int:
        """Chips of the whole layout."""
        return self.tp * self.cp * self.pp * self.dp

    @property
    def replicas(self) -> int:
        """Replicas inside a stage: the fewest over which the expert grid folds, or all of them."""
        grid, unit = self.ep * self.etp, self.tp * self.cp
        return next((r for r in divisors(self.dp) if (unit * r) % grid == 0), self.dp)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A layout that was read, legal or not.

    broken: rules that only its written form can break. placed: whether its pools are as the
    author meant them; false when the written form does not fit the cluster at all.
    """

    layout: Layout
    broken: tuple[Violation, ...] = ()
    placed: bool = True


def uniform_layout(problem: Problem, uniform: Uniform) -> Parsed:
    """The layout; rules that any layout has to obey are left to ``costmodel.layout.rules``.

    Raises InputError when there is no such layout at all.
    """
    uneven: list[Violation] = []
    stages = _stages(problem, uniform, uneven)
    pools = _pools(problem, uniform)
    too_large = tuple(_too_large(uniform, pools))
    spread, unplaced = _first_pool(uniform, pools), too_large
    if not too_large:
        over_pools = _whole_pipelines if uniform.outer == "dp" else _stages_over_pools
        spread, unplaced = over_pools(uniform, pools)
    option = _option(problem, uniform)
    microbatches = problem.job.global_batch_size // (option.micro_batch_size * uniform.dp)
    pipelines = tuple(
        Pipeline(count=count, microbatches=max(1, microbatches), stages=_placed(stages, option, on))
        for count, on in spread
    )
    layout = Layout(pipelines=pipelines, schedule=_schedule(problem, uniform))
    return Parsed(layout=layout, broken=(*uneven, *unplaced), placed=not unplaced)


def _placed(
    stages: tuple[Stage, ...], option: StageOption, pools: tuple[str, ...]
) -> tuple[Stage, ...]:
    pairs = zip(stages, pools, strict=True)
    return tuple(replace(stage, option=replace(option, pool=pool)) for stage, pool in pairs)


def _schedule(problem: Problem, uniform: Uniform) -> Schedule:
    usual = "interleaved" if uniform.vp > 1 else "1f1b"
    kind = uniform.schedule or problem.job.schedule or usual
    known = schedules().get(kind)
    fixed = known.program.chunks if known and known.program and uniform.vp == 1 else uniform.vp
    return Schedule(kind=kind, virtual_stages=fixed)


def _ways(problem: Problem, uniform: Uniform) -> tuple[Route, ...]:
    """The ways that micro-batches take. Raises InputError when there are none over these stages."""
    total = problem.model.num_layers
    if uniform.pp * uniform.vp > MAX_STAGES:
        rule, fix = f"x vp must be at most {MAX_STAGES}", f"use at most {total} for {total} layers"
        raise InputError.of(field="/pp", value=uniform.pp, rule=rule, fix=fix)
    schedule = _schedule(problem, uniform)
    known = schedules().get(schedule.kind)
    if known is None or known.program is None:
        return line(uniform.pp, uniform.vp)
    refusal = known.program.refusal(uniform.pp, 2 * MAX_STAGES)
    if refusal is not None:
        rule = f"{refusal.rule}, with the schedule {schedule.kind}"
        raise InputError.of(field="/pp", value=uniform.pp, rule=rule, fix=refusal.fix)
    return known.program.routes(uniform.pp)


def _option(problem: Problem, uniform: Uniform) -> StageOption:
    return StageOption(
        pool="",
        tp=uniform.tp,
        cp=uniform.cp,
        ep=uniform.ep,
        etp=uniform.etp,
        replicas=uniform.replicas,
        micro_batch_size=uniform.mbs or problem.job.micro_batch_size or 1,
        sequence_parallel=uniform.tp > 1 if uniform.sp is None else uniform.sp,
        zero=uniform.zero,
        recompute=uniform.recompute or problem.job.recompute or "none",
        offload=uniform.offload,
    )


def _pools(problem: Problem, uniform: Uniform) -> tuple[Pool, ...]:
    if uniform.pools is None:
        return problem.cluster.pools
    known = [pool.name for pool in problem.cluster.pools]
    names = uniform.pools.split("/")
    errors = [
        UnknownNameError(kind="pool", name=name, known=known, field="/pools")
        for name in names
        if name not in known
    ]
    if errors:
        raise InputError(v for error in errors for v in error.violations)
    return tuple(problem.cluster.pool(name) for name in dict.fromkeys(names))


def _stages(problem: Problem, uniform: Uniform, broken: list[Violation]) -> tuple[Stage, ...]:
    """The stages of one pipeline, still without degrees."""
    given = [x is not None for x in (uniform.layout, uniform.layers, uniform.first or uniform.last)]
    if sum(given) > 1:
        raise InputError.of(
            field="/layers",
            value=uniform.layers or uniform.layout,
            rule="must be the only one of layers, layout and first or last",
            fix="keep one of them",
        )
    if uniform.layout is not None:
        return _notated(problem, uniform, uniform.layout)
    ways = _ways(problem, uniform)
    counts = _counts(problem, uniform, len(ways[0]), broken)
    first, last = {way[0][0] for way in ways}, {way[-1][0] for way in ways}
    depth = len(problem.model.mtp)
    return tuple(
        Stage(
            option=_NOWHERE,
            chunks=own,
            embedding=i in first,
            head=i in last,
            mtp=depth if i in last else 0,
        )
        for i, own in enumerate(dealt(counts, ways))
    )


_NOWHERE = StageOption(pool="")


def _notated(problem: Problem, uniform: Uniform, text: str) -> tuple[Stage, ...]:
    ways = _ways(problem, uniform)
    notated = read_notation(text)
    broken = check_notation(
        notated,
        num_layers=problem.model.num_layers,
        mtp=len(problem.model.mtp),
        num_stages=len(ways[0]),
    )
    if sum(stage.loss for stage in notated) > 1:
        rule, fix = "must have one L to be estimated", "keep the loss on the last stage"
        broken += (Violation(field="/layout", value=text, rule=rule, fix=fix),)
    if broken:
        raise InputError(broken)
    chunks = dealt(tuple(stage.layers for stage in notated), ways)
    places = [
        {c for w in ways for c, (stage, _) in enumerate(w) if stage == i}
        for i in range(len(chunks))
    ]
    return tuple(
        _stage(own, tuple(notated[c] for c in sorted(held)))
        for own, held in zip(chunks, places, strict=True)
    )


def _stage(chunks: tuple[tuple[int, int], ...], notated: tuple[NotatedStage, ...]) -> Stage:
    return Stage(
        option=_NOWHERE,
        chunks=chunks,
        embedding=any(n.embedding for n in notated),
        head=any(n.loss for n in notated),
        mtp=sum(n.mtp for n in notated),
    )


def _counts(
    problem: Problem, uniform: Uniform, parts: int, broken: list[Violation]
) -> tuple[int, ...]:
    """Layers of each virtual stage."""
    total = problem.model.num_layers
    if uniform.layers not in (None, EVEN):
        return _explicit(uniform, total, parts)
    if uniform.first is not None or uniform.last is not None:
        counts = with_ends(total, parts, uniform.first, uniform.last)
        if len(counts) != parts or min(counts) < 1 or sum(counts) != total:
            rule = f"and last must leave layers for all {parts} stages"
            given = [uniform.first, uniform.last]
            raise InputError.of(field="/first", value=given, rule=rule, fix="lower them")
        return counts
    if total % parts and uniform.layers == EVEN:
        even = described(balanced(total, parts))
        legal = divisors(total)
        rule = f"x vp = {parts} must divide the {total} layers to split them evenly"
        fix = f"use pp x vp {alternatives(nearest(parts, legal))}, or {even} without layers=even"
        broken.append(Violation(field="/pp", value=uniform.pp, rule=rule, fix=fix))
    return balanced(total, parts)


def _explicit(uniform: Uniform, total: int, parts: int) -> tuple[int, ...]:
    words = (uniform.layers or "").split("/")
    counts = tuple(int(word) for word in words if word.isdecimal() and len(word) < 9)
    if len(counts) != len(words) or len(counts) != parts or sum(counts) != total:
        raise InputError.of(
            field="/layers",
            value=uniform.layers,
            rule=f"must be {parts} numbers (pp x vp) that add up to {total}",
            fix=f"for example {'/'.join(map(str, balanced(total, parts)))}",
        )
    return counts


Spread = tuple[tuple[int, tuple[str, ...]], ...]
"""Number of pipelines and the pool of each of their stages, for each kind of pipeline."""


def _first_pool(uniform: Uniform, pools: tuple[Pool, ...]) -> Spread:
    return ((uniform.dp // uniform.replicas, (pools[0].name,) * uniform.pp),)


def _too_large(uniform: Uniform, pools: tuple[Pool, ...]) -> Iterator[Violation]:
    available = sum(pool.num_chips for pool in pools)
    if uniform.num_chips > available:
        each = uniform.tp * uniform.cp * uniform.pp
        names = ", ".join(pool.name for pool in pools)
        yield Violation(
            field="/dp",
            value=uniform.dp,
            rule=(
                f"x tp x cp x pp = {uniform.num_chips} chips must be at most the {available} "
                f"of {names}"
            ),
            fix=f"use dp {available // each}" if each <= available else "lower tp, cp or pp",
        )


def _stages_over_pools(
    uniform: Uniform, pools: tuple[Pool, ...]
) -> tuple[Spread, tuple[Violation, ...]]:
    """Stage i of all replicas takes the i-th run of chips, pools in order."""
    each = uniform.num_chips // uniform.pp
    left = {pool.name: pool.num_chips for pool in pools}
    names: list[str] = []
    for stage in range(uniform.pp):
        name = next(name for name, free in left.items() if free)
        if left[name] < each:
            problem = _straddles(uniform, stage, each, (name, left[name]))
            return _first_pool(uniform, pools), (problem,)
        left[name] -= each
        names.append(name)
    return ((uniform.dp // uniform.replicas, tuple(names)),), ()


def _straddles(uniform: Uniform, stage: int, each: int, rest: tuple[str, int]) -> Violation:
    return Violation(
        field="/pp",
        value=uniform.pp,
        rule=f"must not let a stage straddle pools: stage {stage} takes {each} chips where "
        f"{rest[0]} has {rest[1]} left",
        fix="choose pp so that whole stages fill each pool, lay whole pipelines over the pools "
        "with outer=dp, or write the pipelines out in a layout document",
    )


def _whole_pipelines(
    uniform: Uniform, pools: tuple[Pool, ...]
) -> tuple[Spread, tuple[Violation, ...]]:
    """As many whole pipelines as fit into each pool, pools in order."""
    each = uniform.tp * uniform.cp * uniform.pp * uniform.replicas
    wanted = left = uniform.dp // uniform.replicas
    spread: list[tuple[int, tuple[str, ...]]] = []
    for pool in pools:
        count = min(left, pool.num_chips // each)
        left -= count
        spread += [(count, (pool.name,) * uniform.pp)] * (count > 0)
    if left == 0:
        return tuple(spread), ()
    most = (wanted - left) * uniform.replicas
    rule = f"pipelines of {each} chips must fit into whole pools"
    fix = f"use dp {most}" if most else "lower tp, cp or pp"
    return _first_pool(uniform, pools), (
        Violation(field="/dp", value=uniform.dp, rule=rule, fix=fix),
    )


def smallest_world(uniform: Uniform) -> int:
    """Fewest chips for these degrees: ``pp x lcm(tp x cp, ep x etp)``."""
    return uniform.pp * lcm(uniform.tp * uniform.cp, uniform.ep * uniform.etp)
