"""Builds the model graph of a case from its stated dimensions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from costmodel.calibration.case import Case, Section, UnscorableError
from costmodel.calibration.convention import Convention
from costmodel.model.builder import LAYER, RMS, Norm
from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.graph import Attribute, Block, ModelGraph, Op
from costmodel.model.parts import Attention, Experts, LatentAttention, Mlp
from costmodel.model.stack import TIED_HEAD, Stack, embedding_block, head_block

OTHER_MODELS = (
    *("bert", "multimodal", "mimo", "llava", "hybrid", "mamba", "t5"),
    *("nemotron-3", "nemotron-h", "nemotronh", "nemotron-5", "nemotron3_"),
)
"""Families of the name whose layers the stated dimensions do not describe."""

MAX_LAYERS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is read from a case and what had to be assumed on the way."""

    case: Case
    convention: Convention
    assumptions: list[str] = field(default_factory=list[str])

    def assume(self, sentence: str) -> None:
        """Records one assumption, once."""
        if sentence not in self.assumptions:
            self.assumptions.append(sentence)


def model_of(reading: Reading) -> ModelGraph:
    """The graph. Raises UnscorableError for a model that the case does not describe."""
    case, model = reading.case, reading.case.model
    name = f"{model.word('family')} {model.word('name')}".lower()
    unknown = next((family for family in OTHER_MODELS if family in name), None)
    if unknown:
        raise UnscorableError(f"model: layers of {unknown} models are not stated")
    hidden, layers = model.need("hidden"), model.need("layers")
    if layers > MAX_LAYERS:
        raise UnscorableError("model layers out of range")
    gated = _gated(reading)
    norm = RMS if gated else LAYER
    blocks = _blocks(reading, hidden, gated, norm)
    sparse = _sparse(model, layers)
    positions = _positions(reading, gated, name)
    vocab = _vocab(reading)
    graph = Stack(
        prologue=(embedding_block(hidden, vocab, positions=positions),),
        layers=_alternating(blocks, sparse, name),
        epilogue=(head_block(hidden, vocab, norm),),
        ties=(TIED_HEAD,) if _tied(reading, name) else (),
        max_sequence_length=model.size("seq"),
    ).graph(Config({}, name=model.word("name")), "stated")
    return as_run(graph, reading.convention, recompute_attention=_recomputes_attention(case))


EVERY_OTHER_LAYER = ("gpt-oss",)
"""Models whose window holds for every other layer, from the first on (``layer_types`` of
https://huggingface.co/openai/gpt-oss-120b/blob/main/config.json); the others attend to all."""


def _alternating(blocks: Mapping[bool, Block], sparse: list[bool], name: str) -> list[Block]:
    layers = [blocks[is_sparse] for is_sparse in sparse]
    if not any(model in name for model in EVERY_OTHER_LAYER):
        return layers
    full = {block.name: _attending_to_all(block) for block in blocks.values()}
    return [full[block.name] if i % 2 else block for i, block in enumerate(layers)]


def _attending_to_all(block: Block) -> Block:
    ops = tuple(
        replace(op, attributes=MappingProxyType({**op.attributes, "window": 0}))
        if op.kind == "attention"
        else op
        for op in block.ops
    )
    return replace(block, name=f"{block.name}_full", ops=ops)


def _gated(reading: Reading) -> bool:
    stated = reading.case.model.flag("gated_mlp")
    if stated is not None:
        return stated
    reading.assume("gated MLP: not stated, assumed")
    return True


def _vocab(reading: Reading) -> int:
    stated = reading.case.model.size("vocab")
    if stated:
        return stated
    if reading.convention.vocab is None:
        raise UnscorableError("model vocab not stated")
    reading.assume(f"vocabulary not stated: {reading.convention.vocab} as the stack's usual one")
    return reading.convention.vocab


def _tied(reading: Reading, name: str) -> bool:
    stated = reading.case.model.flag("tied")
    if stated is not None:
        return stated
    if "untie" in name:
        return False
    reading.assume(f"tied embeddings not stated: {reading.convention.tied}")
    return reading.convention.tied


def _positions(reading: Reading, gated: bool, name: str) -> int:
    learned = reading.convention.learned_positions and not gated and "rope" not in name
    return reading.case.model.need("seq") if learned else 0


def _blocks(reading: Reading, hidden: int, gated: bool, norm: Norm) -> Mapping[bool, Block]:
    """The layer without (False) and with experts (True)."""
    model = reading.case.model
    bias = not gated
    dense = Layer(
        hidden=hidden,
        attention=_attention(model, hidden, bias),
        feed=Mlp(
            ffn=model.size("ffn_hidden") or 4 * hidden,
            gated=gated,
            function="silu" if gated else "gelu",
            bias=bias,
        ),
        norm=norm,
    )
    if not model.size("experts"):
        return {False: layer_block("layer", dense)}
    sparse = replace(dense, feed=_experts(model, hidden, gated))
    return {False: layer_block("dense", dense), True: layer_block("moe", sparse)}


def _attention(model: Section, hidden: int, bias: bool) -> Attention | LatentAttention:
    heads = model.need("heads")
    latent = model.sub("mla")
    if latent is not None:
        return LatentAttention(
            heads=heads,
            q_rank=latent.size("q_lora_rank"),
            kv_rank=latent.need("kv_lora_rank"),
            nope_dim=latent.need("qk_nope_head_dim"),
            rope_dim=latent.need("qk_rope_head_dim"),
            v_dim=latent.need("v_head_dim"),
        )
    if "mla" in model.word("name").lower() or "MLA" in model.word("attention"):
        raise UnscorableError("model: ranks of the latent attention not stated")
    width = model.size("head_dim") or hidden // heads
    return Attention(
        heads=heads,
        kv_heads=model.size("kv_heads") or heads,
        qk_dim=width,
        v_dim=width,
        qkv_bias=bias,
        out_bias=bias,
        rotary=None if bias else 0,
        window=model.size("sliding_window") or 0,
    )


def _experts(model: Section, hidden: int, gated: bool) -> Experts:
    ffn = model.size("expert_ffn") or model.size("ffn_hidden") or 4 * hidden
    shared = model.size("shared_expert_ffn") or (model.size("shared_experts") or 0) * ffn
    return Experts(
        experts=model.need("experts"),
        top_k=model.need("topk"),
        ffn=ffn,
        shared_ffn=shared,
        function="silu" if gated else "gelu",
        gated=gated,
    )


def _sparse(model: Section, layers: int) -> list[bool]:
    """Which layers have experts: ``moe_layer_freq`` as ``([0]*3+[1]*11)``, or all but the first."""
    if not model.size("experts"):
        return [False] * layers
    runs = re.findall(r"\[([01])\]\*(\d+)", model.word("moe_layer_freq"))
    if runs:
        flags = [flag == "1" for flag, times in runs for _ in range(min(int(times), layers))]
        if len(flags) != layers:
            raise UnscorableError("model moe_layer_freq does not cover the layers")
        return flags
    return [index >= (model.size("dense_layers") or 0) for index in range(layers)]


def _recomputes_attention(case: Case) -> bool:
    """Selective recomputation as Megatron-LM means it by default: of the attention core."""
    text = case.parallel.text("recompute")
    return "selective" in text and ("attn" in text or "attention" in text or "modules" not in text)


def as_run(graph: ModelGraph, how: Convention, *, recompute_attention: bool) -> ModelGraph:
    """The graph with the attributes by which this software runs its ops."""

    def attributes(op: Op) -> dict[str, Attribute]:
        if op.kind == "attention" and not how.fused_attention:
            return {"fused": False, "dropout": how.dropout, "recompute": recompute_attention}
        if op.kind == "activation" and not how.fused_gate:
            return {"fused": False}
        if how.dropout and (op.name.endswith("_residual") or op.kind == "position"):
            return {"dropout": True}
        return {}

    def changed(block: Block) -> Block:
        ops = tuple(
            replace(op, attributes=MappingProxyType({**op.attributes, **attributes(op)}))
            for op in block.ops
        )
        return replace(block, ops=ops)

    blocks = {name: changed(block) for name, block in graph.blocks.items()}
    return replace(graph, blocks=MappingProxyType(blocks))
