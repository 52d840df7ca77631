"""Small clusters, jobs and layouts that the cost model's tests share; round, made-up numbers."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from costmodel.hardware.values import COLLECTIVES, Chip, Cluster, IslandLink, Link, Pool
from costmodel.job import Job
from costmodel.layout.values import Layout, Pipeline, Stage, StageOption
from costmodel.model.read import load_model
from costmodel.problem import Problem

EFFICIENCY: Mapping[str, float] = MappingProxyType(dict.fromkeys(map(str, COLLECTIVES), 0.8))
CHIP = Chip(
    name="test-chip",
    title="Test chip",
    vendor="Test",
    memory_bytes=80e9,
    memory_bytes_per_s=2e12,
    memory_fraction=0.8,
    peak_flop_per_s=MappingProxyType({"bf16": 300e12, "fp32": 20e12}),
    matmul_fraction=MappingProxyType({"bf16": 0.8, "fp32": 0.8}),
)


def link(name: str, kind: str, transport: str, bytes_per_s: float) -> Link:
    return Link(
        name=name,
        kind=kind,
        transport=transport,
        topology="switch",
        bytes_per_s=bytes_per_s,
        latency_s=1e-5,
        efficiency=EFFICIENCY,
    )


SCALE_UP = link("up", "scale-up", "scale-up", 300e9)
SCALE_OUT = link("out", "scale-out", "verbs-ib", 25e9)
ETHERNET = link("ethernet", "network", "tcp", 3e9)


def pool(name: str, *, island: str = "a", nodes: int = 4) -> Pool:
    return Pool(
        name=name,
        island=island,
        nodes=nodes,
        chips_per_node=8,
        chip=CHIP,
        scale_up=SCALE_UP,
        scale_out=SCALE_OUT,
        nics=8,
        scale_up_domain=8,
    )


def cluster(*pools: Pool) -> Cluster:
    islands = list(dict.fromkeys(p.island for p in pools))
    between = tuple(
        IslandLink(islands=(a, b), link=ETHERNET, nics=1)
        for i, a in enumerate(islands)
        for b in islands[i + 1 :]
    )
    return Cluster(name="test", pools=pools, between=between)


TWO_ISLANDS = cluster(pool("p"), pool("q", island="b"))


def problem(
    model: str = "llama3-8b", *, batch: int = 32, length: int = 4096, precision: str = "bf16"
) -> Problem:
    job = Job(global_batch_size=batch, sequence_length=length, precision=precision)
    return Problem(model=load_model(model), cluster=TWO_ISLANDS, job=job)


def pipeline(
    options: Sequence[StageOption], cuts: Sequence[int], microbatches: int, count: int = 1
) -> Pipeline:
    """Stages over the layers between consecutive ``cuts``."""
    last = len(options) - 1
    stages = tuple(
        Stage(
            option=option,
            chunks=((cuts[i], cuts[i + 1]),),
            embedding=i == 0,
            head=i == last,
        )
        for i, option in enumerate(options)
    )
    return Pipeline(stages=stages, microbatches=microbatches, count=count)


def even_layout(option: StageOption, stages: int, microbatches: int, count: int = 1) -> Layout:
    """Equal stages of the 32-layer default model in one pool."""
    cuts = [32 * i // stages for i in range(stages + 1)]
    return Layout(pipelines=(pipeline([option] * stages, cuts, microbatches, count),))
