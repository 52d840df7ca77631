"""Nemotron-NAS: Llama's layer with parts removed or resized layer by layer (arXiv 2411.19146)."""

from dataclasses import dataclass, replace

from costmodel.model.config import Config
from costmodel.model.decoder import Layer, layer_block
from costmodel.model.family import Family
from costmodel.model.graph import Block, ModelGraph
from costmodel.model.parts import Mlp
from costmodel.model.standard import Sizes, decoder_model, grouped, read_sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What one layer holds: kv heads (0: no attention) and MLP width (0: no MLP)."""

    kv_heads: int
    ffn: int


def build(config: Config) -> ModelGraph:
    """``block_configs`` says for every layer what attention and MLP it has."""
    sizes = read_sizes(config)
    rows = config.per_layer("block_configs", sizes.layers)
    if rows is None and not config.has("block_configs"):
        config.refuse("block_configs", "is needed", "add one entry for each layer")
    if rows is not None and not all(isinstance(row, dict) for row in rows):
        config.refuse("block_configs", "must hold mappings", "give attention and ffn of each")
    config.check()
    parts = [_read_parts(config, index, row, sizes) for index, row in enumerate(rows or ())]
    config.check()
    blocks = {each: _block(config, sizes, each) for each in dict.fromkeys(parts)}
    return decoder_model(config, "nemotron_nas", sizes, [blocks[each] for each in parts])


def _read_parts(config: Config, index: int, row: dict[str, object], sizes: Sizes) -> Parts:
    pointer = f"{config.pointer}/block_configs/{index}"
    layer = Config(row, pointer=pointer, violations=config.violations)
    attention, ffn = layer.sub("attention"), layer.sub("ffn")
    for part in (attention, ffn):
        if part.flag("replace_with_linear", default=False):
            part.refuse("replace_with_linear", "must be false", "give the block graph itself")
    no_attention = attention.flag("no_op", default=False)
    no_ffn = ffn.flag("no_op", default=False)
    if no_attention and no_ffn:
        layer.refuse("ffn", "must leave attention or an MLP", "remove the layer")
    group = 1 if no_attention else attention.size("n_heads_in_group")
    return Parts(
        kv_heads=0 if no_attention else max(1, sizes.heads // group),
        ffn=0 if no_ffn else _width(ffn, sizes.hidden),
    )


def _width(ffn: Config, hidden: int) -> int:
    """2/3 of ``ffn_mult`` times the stream, rounded up to a multiple of 256."""
    if not ffn.has("ffn_mult"):
        ffn.refuse("ffn_mult", "is needed", "add it as a number")
    exact = int(2 * ffn.number("ffn_mult", default=1.0, most=1e3) * hidden / 3)
    return -(-exact // 256) * 256


def _block(config: Config, sizes: Sizes, parts: Parts) -> Block:
    attention = None
    if parts.kv_heads:
        attention = grouped(config, replace(sizes, kv_heads=parts.kv_heads))
    feed = Mlp(ffn=parts.ffn) if parts.ffn else None
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    return layer_block(f"kv{parts.kv_heads}_ffn{parts.ffn}", layer)


FAMILY = Family(name="nemotron_nas", model_types=("nemotron-nas",), build=build)
