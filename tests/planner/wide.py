"""Random small problems of every kind that real ones are made of, small enough to enumerate.

Dense and MoE models, layers of one kind and of several, memory for all and for hardly any, one and
two islands, nodes in numbers that divide nothing.
"""

from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from typing import Any

from costmodel.hardware.values import Cluster, IslandLink
from costmodel.job import Job
from costmodel.layout.values import StageOption
from costmodel.model.graph import ModelGraph
from costmodel.model.read import read_config
from costmodel.problem import Problem
from planner.space import Space
from tests.planner.enumeration import layouts, shapes
from tests.planner.tiny import ETHERNET, chip, pool, space_of, tiny_model

KINDS = ("dense", "moe", "unlike", "windows")
"""Models: equal layers, experts, a dense layer before experts, two sorts of attention."""

MOST_LAYOUTS = 300
MOST_SHAPES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Wide:
    """A problem with its space, and what it is an example of."""

    problem: Problem
    space: Space
    kind: str
    tight: bool


def wide_problem(seed: int, layers: tuple[int, int] = (2, 4)) -> Wide:
    """The problem of a seed; it may be too large to enumerate, or have no layout."""
    random = Random(seed)
    kind, tight = random.choice(KINDS), random.random() < 0.4
    cluster = _cluster(random, tight=tight)
    model = _model(random, kind, layers)
    job = Job(global_batch_size=random.randint(2, 7), sequence_length=random.choice((1024, 4096)))
    space = space_of(
        cluster,
        _options(random, cluster, experts=kind in ("moe", "unlike")),
        max_stages=random.randint(1, 3),
        template_limit=random.choice((1, 2, 3)),
    )
    problem = Problem(model=model, cluster=cluster, job=job)
    return Wide(problem=problem, space=replace(space, target="any"), kind=kind, tight=tight)


def is_enumerable(wide: Wide) -> bool:
    """Whether plain loops are done with it soon, and there is a choice."""
    count = sum(1 for _ in islice(shapes(wide.problem, wide.space), MOST_SHAPES))
    size = count * wide.problem.job.global_batch_size * wide.problem.cluster.num_chips
    if count == MOST_SHAPES or size > 6 * MOST_SHAPES:
        return False
    few = sum(1 for _ in islice(layouts(wide.problem, wide.space), MOST_LAYOUTS + 1))
    return 1 < few <= MOST_LAYOUTS


def _cluster(random: Random, *, tight: bool) -> Cluster:
    num_pools = random.choice((1, 2, 2))
    islands = random.randint(1, num_pools)
    memories = (1.5e9, 2.5e9, 4e9) if tight else (20e9, 80e9)
    pools = tuple(
        pool(
            f"pool{k}",
            island=f"island{k % islands}",
            nodes=random.choice((1, 2, 3)),
            chips_per_node=random.choice((1, 2)),
            kind=chip(
                f"chip{k}",
                flop_per_s=random.choice((120e12, 300e12, 600e12)),
                memory_bytes=random.choice(memories),
            ),
        )
        for k in range(num_pools)
    )
    joined = (IslandLink(islands=("island0", "island1"), link=ETHERNET, nics=1),)
    return Cluster(name="wide", pools=pools, between=joined if islands > 1 else ())


def _options(random: Random, cluster: Cluster, *, experts: bool) -> tuple[StageOption, ...]:
    modes = random.choice((("none",), ("none", "full"), ("selective", "full")))
    zeros = random.choice(((1,), (1, 2), (0, 1), (3,)))
    sizes = random.choice(((1,), (2,), (1, 2)))
    degrees = [(1, 1, 1), (2, 1, 1)] + ([(1, 2, 2)] if experts else [(1, 1, 2)])
    chosen = random.sample(degrees, random.randint(1, 2))
    return tuple(
        StageOption(
            pool=p.name,
            tp=tp,
            ep=ep,
            replicas=replicas,
            micro_batch_size=size,
            sequence_parallel=tp > 1,
            zero=zero,
            recompute=mode,
        )
        for p in cluster.pools
        for tp, ep, replicas in chosen
        if tp <= p.scale_up_domain and tp * replicas <= p.num_chips
        for size in sizes
        for zero in zeros
        for mode in modes
    )


def _model(random: Random, kind: str, fewest_most: tuple[int, int]) -> ModelGraph:
    layers = random.randint(*fewest_most)
    if kind == "dense":
        return tiny_model(layers, hidden=1024, tied=random.random() < 0.3)
    config: dict[str, Any] = {
        "hidden_size": 512,
        "intermediate_size": 2048,
        "num_hidden_layers": layers,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 16000,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
    }
    return read_config(config | _KIND[kind], name=f"{kind}-{layers}")


_KIND: dict[str, dict[str, Any]] = {
    "moe": {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2},
    "unlike": {
        "model_type": "glm4_moe",
        "first_k_dense_replace": 1,
        "moe_intermediate_size": 512,
        "n_routed_experts": 4,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "head_dim": 64,
    },
    "windows": {"model_type": "gemma2", "sliding_window": 256, "head_dim": 64},
}
