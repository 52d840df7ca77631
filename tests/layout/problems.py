"""Small problems, and legal layouts made by construction rather than by the rules."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from costmodel.hardware.read import load_cluster
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.layout.values import Layout, Pipeline, Schedule, Stage, StageOption
from costmodel.model.graph import ModelGraph
from costmodel.model.read import load_model
from costmodel.problem import Problem

SEQUENCE = 4096

DENSE_CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "intermediate_size": 4096,
    "vocab_size": 32001,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "max_position_embeddings": 8192,
}

SPARSE_CONFIG: dict[str, Any] = {
    "model_type": "deepseek_v3",
    "hidden_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "q_lora_rank": 256,
    "kv_lora_rank": 128,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    "intermediate_size": 4096,
    "moe_intermediate_size": 512,
    "n_routed_experts": 16,
    "n_shared_experts": 1,
    "num_experts_per_tok": 4,
    "first_k_dense_replace": 2,
    "moe_layer_freq": 1,
    "num_nextn_predict_layers": 1,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
    "max_position_embeddings": 8192,
}


def model(config: dict[str, Any], **changes: Any) -> ModelGraph:
    """The graph of a config with some keys changed."""
    return load_model({"config": {**config, **changes}})


def pool_document(name: str, nodes: int, **changes: Any) -> dict[str, Any]:
    """A pool of A100 nodes."""
    return {
        "name": name,
        "island": name,
        "nodes": nodes,
        "chips_per_node": 8,
        "chip": "nvidia-a100-sxm-80g",
        "scale_up": "nvlink3",
        "scale_out": {"link": "infiniband-hdr", "nics": 4},
        **changes,
    }


def cluster(*pools: dict[str, Any], name: str = "test") -> Cluster:
    """A cluster of these pools, islands joined by Ethernet; class defaults for unknown numbers."""
    between = {"link": "ethernet-25g", "nics": 1}
    islands = {p["island"] for p in pools}
    document: dict[str, Any] = {"name": name, "pools": list(pools), "class_defaults": True}
    return load_cluster(document | ({"between_islands": between} if len(islands) > 1 else {}))


def problem(graph: ModelGraph | None = None, where: Cluster | None = None, **job: Any) -> Problem:
    """A problem with defaults for everything."""
    return Problem(
        model=graph or model(DENSE_CONFIG),
        cluster=where or cluster(pool_document("a", 4), pool_document("b", 2)),
        job=replace(Job(global_batch_size=256, sequence_length=SEQUENCE), **job),
    )


def legal_layouts(graph: ModelGraph, where: Cluster) -> st.SearchStrategy[Layout]:
    """Layouts that obey every rule, with whatever global batch size they add up to."""
    return _legal_layout(graph, where)


@st.composite
def _legal_layout(draw: st.DrawFn, graph: ModelGraph, where: Cluster) -> Layout:
    left = {pool.name: pool.num_chips for pool in where.pools}
    zero = draw(st.integers(0, 3))
    virtual = draw(st.sampled_from([1, 1, 2]))
    pipelines = [draw(_legal_pipeline(graph, left, zero, virtual))]
    for _ in range(draw(st.integers(0, 2))):
        if max(left.values()) >= 1:
            pipelines.append(draw(_legal_pipeline(graph, left, zero, virtual)))
    kind = "interleaved" if virtual > 1 else draw(st.sampled_from(["1f1b", "gpipe"]))
    return Layout(pipelines=tuple(pipelines), schedule=Schedule(kind=kind, virtual_stages=virtual))


@st.composite
def _legal_pipeline(
    draw: st.DrawFn, graph: ModelGraph, left: dict[str, int], zero: int, virtual: int
) -> Pipeline:
    samples = draw(st.sampled_from([1, 2, 4]))
    options: list[StageOption] = []
    for _ in range(draw(st.integers(1, 4))):
        room = [name for name, free in left.items() if free >= 1]
        if options and not room:
            break
        option = draw(_legal_option(graph, draw(st.sampled_from(room)), left, samples, zero))
        left[option.pool] -= option.num_chips
        options.append(option)
    parts, total = len(options) * virtual, graph.num_layers
    cuts = draw(
        st.lists(st.integers(1, total - 1), min_size=parts - 1, max_size=parts - 1, unique=True)
    )
    edges = [0, *sorted(cuts), total]
    ranges = list(pairwise(edges))
    size = len(options)
    return Pipeline(
        microbatches=size * draw(st.integers(1, 4)),
        stages=tuple(
            Stage(
                option=option,
                chunks=tuple(ranges[i::size]),
                embedding=i == 0,
                head=i == size - 1,
                mtp=len(graph.mtp) if i == size - 1 else 0,
            )
            for i, option in enumerate(options)
        ),
    )


@st.composite
def _legal_option(
    draw: st.DrawFn, graph: ModelGraph, pool: str, left: dict[str, int], samples: int, zero: int
) -> StageOption:
    limit = left[pool]

    def degree(most: int) -> int:
        return draw(st.sampled_from([d for d in (1, 2, 4, 8) if d <= max(1, most)]))

    tp = degree(min(8, limit))
    cp = degree(min(2, limit // tp))
    replicas = degree(min(samples, limit // (tp * cp)))
    is_sparse = any(op.kind == "experts" for b in graph.blocks.values() for op in b.ops)
    chips = tp * cp * replicas
    ep = degree(min(8, chips)) if is_sparse else 1
    etp = degree(min(2, chips // ep)) if is_sparse else 1
    return StageOption(
        pool=pool,
        tp=tp,
        cp=cp,
        ep=ep,
        etp=etp,
        replicas=replicas,
        micro_batch_size=samples // replicas,
        sequence_parallel=True if is_sparse else draw(st.booleans()),
        zero=zero,
        recompute=draw(st.sampled_from(["none", "selective", "full"])),
    )
