"""Tiny models and layouts that the runner's tests execute."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from costmodel.job import Job
from costmodel.layout.values import Layout, Pipeline, Schedule, Stage, StageOption
from costmodel.model.builder import LAYER, RMS
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.graph import Block, ModelGraph, Tie
from costmodel.model.parts import Attention, Experts, LatentAttention, Mlp
from costmodel.model.stack import TIED_HEAD, embedding_block, head_block
from costmodel.traffic import Widths, forecast
from runner.launch import launch
from runner.task import Fault, Outcome, Task

HIDDEN = 16
VOCAB = 37
SEQUENCE = 16
PLAIN = Schedule()
FLOAT64 = Widths(activation=8, gradient=8, weight=8, loss=8)

GROUPED = Attention(heads=4, kv_heads=4, qk_dim=4, v_dim=4)
LLAMA = Layer(hidden=HIDDEN, attention=replace(GROUPED, kv_heads=2), feed=Mlp(ffn=24))
GPT = Layer(
    hidden=HIDDEN,
    attention=replace(GROUPED, qkv_bias=True, out_bias=True, rotary=None),
    feed=Mlp(ffn=24, gated=False, function="gelu", bias=True),
    norm=LAYER,
)
ROUTED = Experts(experts=8, top_k=2, ffn=12)
MOE = replace(LLAMA, feed=ROUTED)
LATENT = LatentAttention(heads=4, q_rank=12, kv_rank=8, nope_dim=4, rope_dim=4, v_dim=4)
SHARED_MOE = Layer(
    hidden=HIDDEN, attention=LATENT, feed=replace(ROUTED, shared_ffn=8, shared_gate=True)
)


def model(layers: Sequence[Layer], *, tied: bool = False, vocab: int = VOCAB) -> ModelGraph:
    """Embedding, these layers and a head; equal layers share a block."""
    names = {layer: f"layer{index}" for index, layer in enumerate(dict.fromkeys(layers))}
    blocks = [layer_block(name, layer) for layer, name in names.items()]
    first, last = embedding_block(HIDDEN, vocab), head_block(HIDDEN, vocab, RMS)
    return graph(
        (first, *blocks, last), tuple(names[layer] for layer in layers), (TIED_HEAD,) * tied
    )


def graph(
    blocks: Sequence[Block], layers: tuple[str, ...], ties: tuple[Tie, ...] = ()
) -> ModelGraph:
    """A graph whose first block is the prologue and whose last is the epilogue."""
    return ModelGraph(
        name="tiny",
        family="test",
        blocks=MappingProxyType({block.name: block for block in blocks}),
        layers=layers,
        prologue=(blocks[0].name,),
        epilogue=(blocks[-1].name,),
        ties=ties,
    )


def option(**values: int | bool | str) -> StageOption:
    """A stage option of the pool ``cpu``; ZeRO is off unless asked for."""
    return replace(StageOption(pool="cpu", zero=0), **values)


def pipeline(
    *stages: tuple[int, StageOption], microbatches: int = 2, count: int = 1, mtp: int = 0
) -> Pipeline:
    """Consecutive stages of (number of layers, option)."""
    found: list[Stage] = []
    start = 0
    for index, (layers, chosen) in enumerate(stages):
        last = index == len(stages) - 1
        found.append(
            Stage(
                option=chosen,
                chunks=((start, start + layers),),
                embedding=index == 0,
                head=last,
                mtp=mtp if last else 0,
            )
        )
        start += layers
    return Pipeline(stages=tuple(found), microbatches=microbatches, count=count)


def job(layout: Layout, **values: int) -> Job:
    """The job that a layout does."""
    return replace(
        Job(global_batch_size=layout.samples, sequence_length=SEQUENCE, vocab_divisor=1), **values
    )


def run(
    what: ModelGraph, *pipelines: Pipeline, fault: Fault | None = None, schedule: Schedule = PLAIN
) -> Outcome:
    """Executes one step."""
    layout = Layout(pipelines=pipelines, schedule=schedule)
    return launch(
        Task(graph=what, layout=layout, job=job(layout), fault=fault or Fault(), timeout_s=60.0)
    )


def check(what: ModelGraph, *pipelines: Pipeline, schedule: Schedule = PLAIN) -> Outcome:
    """Executes one step and asserts that it equals the reference and the traffic forecast."""
    outcome = run(what, *pipelines, schedule=schedule)
    layout = Layout(pipelines=pipelines, schedule=schedule)
    observed = {key: n for key, n in outcome.observed.items() if key[0] != "metadata"}

    assert outcome.uncovered == ()
    assert outcome.loss_max_abs_diff <= 1e-12
    assert outcome.grad_max_rel_diff <= 1e-9, outcome.worst_parameter
    assert outcome.weight_max_rel_diff <= 1e-9
    assert observed == dict(forecast(what, layout, job(layout), element=FLOAT64))
    return outcome
