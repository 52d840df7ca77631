"""Random problems of a few chips, small enough to enumerate."""

from random import Random

from costmodel.hardware.values import COLLECTIVES, Chip, Cluster, IslandLink, Link, Pool
from costmodel.job import Job
from costmodel.layout.values import StageOption
from costmodel.model.graph import ModelGraph
from costmodel.model.read import read_config
from costmodel.problem import Problem
from planner.space import Space

EFFICIENCY: dict[str, float] = dict.fromkeys(COLLECTIVES, 0.8)


def tiny_model(num_layers: int, *, hidden: int = 2048, tied: bool = False) -> ModelGraph:
    return read_config(
        {
            "model_type": "llama",
            "hidden_size": hidden,
            "intermediate_size": 4 * hidden,
            "num_hidden_layers": num_layers,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "vocab_size": 32000,
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": tied,
        },
        name=f"tiny-{num_layers}",
    )


def link(name: str, kind: str, transport: str, bytes_per_s: float, latency_s: float) -> Link:
    return Link(
        name=name,
        kind=kind,
        transport=transport,
        topology="switch",
        bytes_per_s=bytes_per_s,
        latency_s=latency_s,
        efficiency=EFFICIENCY,
    )


def chip(name: str, *, flop_per_s: float, memory_bytes: float) -> Chip:
    return Chip(
        name=name,
        title=name,
        vendor="v",
        memory_bytes=memory_bytes,
        memory_bytes_per_s=2e12,
        memory_fraction=0.85,
        peak_flop_per_s={"bf16": flop_per_s, "fp32": flop_per_s / 8},
        matmul_fraction={"bf16": 0.8, "fp32": 0.8},
    )


SCALE_UP = link("up", "scale-up", "scale-up", 300e9, 3e-6)
FABRIC = link("fabric", "scale-out", "verbs-ib", 25e9, 5e-6)
ETHERNET = link("ethernet", "between", "tcp", 3e9, 3e-5)


def pool(name: str, *, island: str, nodes: int, chips_per_node: int, kind: Chip) -> Pool:
    return Pool(
        name=name,
        island=island,
        nodes=nodes,
        chips_per_node=chips_per_node,
        chip=kind,
        scale_up=SCALE_UP,
        scale_out=FABRIC,
        nics=1,
        scale_up_domain=chips_per_node,
    )


def tiny_cluster(random: Random, num_pools: int, num_islands: int) -> Cluster:
    pools = tuple(
        pool(
            f"pool{k}",
            island=f"island{k % num_islands}",
            nodes=random.choice((1, 2)),
            chips_per_node=random.choice((1, 2)),
            kind=chip(
                f"chip{k}",
                flop_per_s=random.choice((120e12, 300e12, 600e12)),
                memory_bytes=random.choice((5e9, 8e9, 12e9, 80e9)),
            ),
        )
        for k in range(num_pools)
    )
    joined = (IslandLink(islands=("island0", "island1"), link=ETHERNET, nics=1),)
    return Cluster(name="tiny", pools=pools, between=joined if num_islands > 1 else ())


def tiny_options(random: Random, cluster: Cluster) -> tuple[StageOption, ...]:
    modes = random.choice((("none",), ("none", "full")))
    zeros = random.choice(((1,), (1, 2), (0, 1)))
    sizes = random.choice(((1,), (2,), (1, 2)))
    replicas = random.choice(((1,), (1,), (1, 2)))
    return tuple(
        StageOption(
            pool=p.name,
            tp=tp,
            replicas=r,
            micro_batch_size=b,
            sequence_parallel=tp > 1,
            zero=zero,
            recompute=mode,
        )
        for p in cluster.pools
        for tp in (1, 2)
        if tp <= p.scale_up_domain
        for r in replicas
        if tp * r <= p.num_chips
        for b in sizes
        for zero in zeros
        for mode in modes
    )


def tiny_problem(seed: int) -> tuple[Problem, Space]:
    random = Random(seed)
    num_pools = random.choice((1, 2, 2))
    cluster = tiny_cluster(random, num_pools, random.randint(1, num_pools))
    job = Job(
        global_batch_size=random.randint(2, 8),
        sequence_length=random.choice((1024, 4096)),
    )
    options = tiny_options(random, cluster)
    model = tiny_model(random.randint(2, 5), tied=random.random() < 0.3)
    return Problem(model=model, cluster=cluster, job=job), space_of(
        cluster, options, max_stages=random.randint(1, 3), template_limit=random.choice((1, 2, 3))
    )


def space_of(
    cluster: Cluster,
    options: tuple[StageOption, ...],
    *,
    max_stages: int = 8,
    template_limit: int = 3,
) -> Space:
    return Space(
        version="test",
        target="runner",
        pools=tuple(p.name for p in cluster.pools),
        options=options,
        max_stages=max_stages,
        template_limit=template_limit,
        schedules=("1f1b",),
        pruned={},
        evaluator="test",
    )
