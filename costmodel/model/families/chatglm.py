"""ChatGLM2 and ChatGLM3: Llama's layer in Megatron's spelling (arXiv 2406.12793)."""

from costmodel.model.config import Config
from costmodel.model.decoder import Layer
from costmodel.model.family import Family
from costmodel.model.graph import ModelGraph
from costmodel.model.parts import Attention, Mlp
from costmodel.model.standard import Sizes, read_layers, uniform_model


def build(config: Config) -> ModelGraph:
    """Half of each head is rotated; ``add_qkv_bias`` puts biases on q, k and v only."""
    sizes = _read_sizes(config)
    linear_bias = config.flag("add_bias_linear", default=False)
    attention = Attention(
        heads=sizes.heads,
        kv_heads=sizes.kv_heads,
        qk_dim=sizes.head_dim,
        v_dim=sizes.head_dim,
        qkv_bias=linear_bias or config.flag("add_qkv_bias", default=False),
        out_bias=linear_bias,
        rotary=sizes.head_dim // 2,
    )
    feed = Mlp(ffn=config.size("ffn_hidden_size"), bias=linear_bias)
    config.check()
    layer = Layer(hidden=sizes.hidden, attention=attention, feed=feed)
    return uniform_model(config, "chatglm", sizes, layer)


def _read_sizes(config: Config) -> Sizes:
    heads = config.size("num_attention_heads")
    grouped = config.flag("multi_query_attention", default=False)
    return Sizes(
        hidden=config.size("hidden_size"),
        vocab=config.size("padded_vocab_size", "vocab_size"),
        layers=read_layers(config),
        heads=heads,
        kv_heads=config.size("multi_query_group_num") if grouped else heads,
        head_dim=config.size("kv_channels"),
        positions=config.optional_size("seq_length"),
        tied=config.flag("tie_word_embeddings", default=False),
    )


FAMILY = Family(name="chatglm", model_types=("chatglm",), build=build)
