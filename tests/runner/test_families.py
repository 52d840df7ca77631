"""Models of the catalogue with what the tiny ones lack, small and on unlike stages."""

import pytest

from costmodel.job import Job
from costmodel.layout.values import Layout
from costmodel.model.read import load_model
from runner.fewer_layers import fewer_layers
from runner.reduction import reduce_plan
from runner.validation import run
from tests.runner.tiny import option, pipeline

MODELS = {
    "deepseek-v3": "multi-token prediction, latent attention, dense and expert layers",
    "gpt-oss-120b": "attention sinks, windows, expert biases",
    "bloom-176b": "ALiBi and a tied head",
    "llama4-scout": "chunked attention",
    "gemma2-27b": "norms after each part, windows on every other layer",
    "bert-base": "an encoder with learned positions",
    "falcon-40b": "attention and feed-forward side by side",
}


@pytest.mark.parametrize("name", MODELS)
def test_model_of_the_catalogue(name: str) -> None:
    whole = load_model(name)
    half, depth = whole.num_layers // 2, len(whole.mtp)
    ep = 2 if any("experts" in block.dims for block in whole.blocks.values()) else 1
    stages = (half, option(tp=2, ep=ep, zero=1)), (whole.num_layers - half, option(cp=2, zero=1))
    graph, layout = fewer_layers(whole, Layout(pipelines=(pipeline(*stages, mtp=depth),)), 0.02)
    job = Job(global_batch_size=layout.samples, sequence_length=4096)

    report = run(reduce_plan(graph, layout, job, max_ranks=4))

    assert report["ok"], report["differences"]
