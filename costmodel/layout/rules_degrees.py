"""Rules on the degrees of a stage: what tp, cp, ep and etp have to divide."""

from collections.abc import Iterator
from math import lcm

from costmodel.errors import Violation
from costmodel.job import RECOMPUTE_MODES
from costmodel.layout.rule_tools import (
    advice,
    blocks_of,
    common_divisors,
    divisors,
    expert_blocks,
    places,
)
from costmodel.layout.values import OFFLOAD_MODES, Layout, Stage
from costmodel.model.graph import ModelGraph
from costmodel.problem import Problem

ZERO_STAGES = (0, 1, 2, 3)
POSITIVE = ("tp", "cp", "ep", "etp", "replicas", "micro_batch_size")

NAMES = {
    "heads": "{} attention heads",
    "kv_heads": "{} kv heads (replicating them is not offered)",
    "ffn": "feed-forward width {}",
    "shared_ffn": "shared experts' width {}",
}


def split_dims(model: ModelGraph, stage: Stage) -> dict[str, tuple[int, ...]]:
    """Dimensions that tp splits in the stage's blocks, with their sizes; without the vocabulary."""
    found: dict[str, set[int]] = {}
    for block in blocks_of(model, stage):
        for op in block.ops:
            for dim in op.tp_dims:
                if dim != "vocab":
                    found.setdefault(dim, set()).add(block.dims[dim])
    return {dim: tuple(sorted(sizes)) for dim, sizes in found.items()}


def positive(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Degrees, counts and sizes are at least 1; MTP is at least 0."""
    del problem
    for place in places(layout):
        for name in POSITIVE:
            if getattr(place.option, name) < 1:
                yield place.broken(name, "must be at least 1", "write 1")
        if place.stage.mtp < 0:
            yield place.broken("mtp", "must be at least 0", "write 0", place.stage.mtp)
    for d, pipeline in enumerate(layout.pipelines):
        for name in ("count", "microbatches"):
            value = getattr(pipeline, name)
            if value < 1:
                field = f"/pipelines/{d}/{name}"
                yield Violation(field=field, value=value, rule="must be at least 1", fix="write 1")
    if layout.schedule.virtual_stages < 1:
        field, value = "/schedule/virtual_stages", layout.schedule.virtual_stages
        yield Violation(field=field, value=value, rule="must be at least 1", fix="write 1")


def tp_divides_model(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """tp divides every dimension that it splits (heads, widths); one violation for each."""
    for place in places(layout):
        dims = split_dims(problem.model, place.stage)
        legal = common_divisors(size for sizes in dims.values() for size in sizes) if dims else ()
        for dim, sizes in dims.items():
            for size in sizes:
                if size % place.option.tp:
                    what = NAMES.get(dim, f"{dim} dimension of {{}}").format(size)
                    rule = f"must divide the {what} of {problem.model.name}"
                    yield place.broken("tp", rule, advice("tp", place.option.tp, legal))


def vocabulary_splits(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """Without padding (vocabulary divisor 1) tp divides the vocabulary."""
    if problem.job.vocab_divisor != 1:
        return
    for place in places(layout):
        blocks = blocks_of(problem.model, place.stage)
        sizes = {b.dims["vocab"] for b in blocks if any("vocab" in o.tp_dims for o in b.ops)}
        for size in sorted(sizes):
            if size % place.option.tp:
                rule = f"must divide the vocabulary of {size}, which vocab_divisor 1 does not pad"
                fix = advice("tp", place.option.tp, divisors(size))
                yield place.broken("tp", rule, f"{fix}, or let the job's vocab_divisor pad it")


def context_splits(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """A sequence is cut into 2 cp equal parts, of which every rank gets a cheap and a dear one.

    Load balancing of causal ring attention as in Megatron-LM: ``s % (2 cp) == 0``.
    """
    length = problem.job.sequence_length
    for place in places(layout):
        cp = place.option.cp
        if cp > 1 and length % (2 * cp):
            legal = divisors(length // 2) if length % 2 == 0 else (1,)
            padded = -(-length // (2 * cp)) * 2 * cp
            rule = f"must cut the sequence of {length} into 2 x cp equal parts"
            fix = f"{advice('cp', cp, legal)}, or pad the sequence to {padded}"
            yield place.broken("cp", rule, fix)


def sequence_parallel_splits(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """With sequence parallelism tp divides the tokens that a cp rank has of a sequence."""
    length = problem.job.sequence_length
    for place in places(layout):
        option = place.option
        unit = option.tp * option.cp
        if option.sequence_parallel and option.tp > 1 and length % unit:
            rule = f"x cp {option.cp} must divide the {length} tokens of a sequence"
            legal = divisors(length // option.cp) if length % option.cp == 0 else ()
            padded = -(-length // unit) * unit
            fix = f"{advice('tp', option.tp, legal)}, or pad the sequence to {padded}"
            yield place.broken("tp", rule, fix)


def experts_need_sequence_parallel(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """A model with experts needs sequence parallelism when tp > 1, or tokens are routed twice."""
    if not expert_blocks(problem.model):
        return
    for place in places(layout):
        if place.option.tp > 1 and not place.option.sequence_parallel:
            rule = "must be true where a model with experts runs with tp > 1"
            yield place.broken("sequence_parallel", rule, "write true, or use tp 1")


def ep_divides_experts(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """ep divides the number of routed experts; more ranks than experts need etp."""
    counts = [block.dims["experts"] for block in expert_blocks(problem.model)]
    for place in places(layout):
        ep = place.option.ep
        if not counts and ep > 1:
            yield place.broken("ep", "must be 1 for a model without experts", "write 1")
        if any(experts % ep for experts in counts):
            fix = advice("ep", ep, common_divisors(counts))
            if ep > min(counts) and ep % min(counts) == 0:
                fix = f"use ep {min(counts)} with etp {place.option.etp * ep // min(counts)}"
            rule = f"must divide the {min(counts)} experts of {problem.model.name}"
            yield place.broken("ep", rule, fix)


def etp_divides_experts(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """etp divides the width of a routed expert."""
    widths = [block.dims["expert_ffn"] for block in expert_blocks(problem.model)]
    for place in places(layout):
        etp = place.option.etp
        if not widths and etp > 1:
            yield place.broken("etp", "must be 1 for a model without experts", "write 1")
        if any(width % etp for width in widths):
            rule = f"must divide the {min(widths)} columns of an expert"
            yield place.broken("etp", rule, advice("etp", etp, common_divisors(widths)))


def expert_grid_fits(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """The expert grid folds over the chips of a stage: ep x etp divides tp x cp x replicas."""
    del problem
    for place in places(layout):
        option = place.option
        grid = option.ep * option.etp
        if option.num_chips % grid:
            chips = lcm(option.tp * option.cp, grid)
            legal = divisors(max(1, option.num_chips // option.etp))
            replicas = chips // (option.tp * option.cp)
            rule = f"x etp = {grid} must divide tp x cp x replicas = {option.num_chips}"
            fix = (
                f"{advice('ep', option.ep, legal)}, or {replicas} replicas ({chips} chips a stage)"
            )
            yield place.broken("ep", rule, fix)


def known_recompute(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """The recompute mode is one that the cost model knows."""
    del problem
    for place in places(layout):
        if place.option.recompute not in RECOMPUTE_MODES:
            rule = "must be a known recompute mode"
            yield place.broken("recompute", rule, f"use {', '.join(RECOMPUTE_MODES)}")


def known_offload(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """What goes to the host's memory is the optimizer's state, activations or both."""
    del problem
    for place in places(layout):
        if place.option.offload not in OFFLOAD_MODES:
            rule = "must be something that can be kept in the host's memory"
            yield place.broken("offload", rule, f"use {', '.join(OFFLOAD_MODES)}")


def known_zero(problem: Problem, layout: Layout) -> Iterator[Violation]:
    """ZeRO stages go from 0 to 3."""
    del problem
    for place in places(layout):
        if place.option.zero not in ZERO_STAGES:
            rule = "must be a ZeRO stage, 0 to 3"
            yield place.broken("zero", rule, advice("zero", place.option.zero, ZERO_STAGES))


DEGREE_RULES = (
    tp_divides_model,
    vocabulary_splits,
    context_splits,
    sequence_parallel_splits,
    experts_need_sequence_parallel,
    ep_divides_experts,
    etp_divides_experts,
    expert_grid_fits,
    known_recompute,
    known_offload,
    known_zero,
)
