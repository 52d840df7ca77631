"""The rules of megatron@0.16 against the package itself."""

import warnings
from dataclasses import replace
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costmodel.layout.values import Layout, Pipeline, Stage
from planner.targets.registry import target_called
from tests.planner.targets.examples import Case, good_case
from tests.planner.tiny import tiny_model

LAYOUTS = "megatron.core.transformer.pipeline_parallel_layer_layout"
CONFIGS = "megatron.core.transformer.transformer_config"
TARGET = target_called("megatron@0.16")


def imported(name: str) -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def written(layout: Layout) -> str:
    """The layout as ``--pipeline-model-parallel-layout`` takes it, the letters unrolled."""
    stages = layout.pipelines[0].stages
    return "|".join(
        "E" * stage.embedding + "t" * stage.num_layers + "L" * stage.head for stage in stages
    )


def cut(layers: int, cuts: tuple[int, ...]) -> Case:
    """A good case with the layers cut so; the last stages' pool holds them all."""
    case = good_case(TARGET)
    option = case.layout.pipelines[0].stages[0].option
    edges = (0, *cuts, layers)
    stages = tuple(
        Stage(
            option=option,
            chunks=((a, b),),
            embedding=i == 0,
            head=i == len(cuts),
        )
        for i, (a, b) in enumerate(pairwise(edges))
    )
    problem = replace(case.problem, model=tiny_model(layers))
    layout = Layout(pipelines=(Pipeline(stages=stages, microbatches=8),))
    return Case(problem=problem, layout=layout)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 40).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(1, n - 1)))))
def test_any_split_that_is_allowed_parses(drawn: tuple[int, set[int]]) -> None:
    layers, chosen = drawn
    case = cut(layers, tuple(sorted(chosen)[:3]))
    stages = len(case.layout.pipelines[0].stages)
    parser: Any = imported(LAYOUTS).PipelineParallelLayerLayout

    parsed = parser.from_str(written(case.layout), stages)

    assert TARGET.violations(case.problem, case.layout) == ()
    assert not parsed.validate_layer_layout(layers, 0)
    decoders = [sum(x.name == "decoder" for x in rank[0]) for rank in parsed.layout]
    assert decoders == [s.num_layers for s in case.layout.pipelines[0].stages]


def config(**changes: Any) -> Any:
    """A configuration of the tiny model."""
    sizes: dict[str, Any] = {
        "num_layers": 4,
        "hidden_size": 2048,
        "num_attention_heads": 16,
        "num_query_groups": 8,
        "params_dtype": imported("torch").bfloat16,
        "pipeline_dtype": imported("torch").bfloat16,
    }
    kind = imported(CONFIGS).TransformerConfig
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(**{**sizes, **changes})


@pytest.mark.parametrize("mode", ["none", "selective", "full"])
def test_recompute_modes_are_known(mode: str) -> None:
    asked = {
        "none": {},
        "selective": {"recompute_granularity": "selective"},
        "full": {
            "recompute_granularity": "full",
            "recompute_method": "uniform",
            "recompute_num_layers": 1,
        },
    }
    case = good_case(TARGET).everywhere(recompute=mode)

    assert config(**asked[mode])
    assert TARGET.violations(case.problem, case.layout) == ()


def test_sequence_parallelism_alone_is_refused_by_both() -> None:
    case = good_case(TARGET).everywhere(tp=1, sequence_parallel=True)

    assert TARGET.violations(case.problem, case.layout)
    with pytest.raises(ValueError, match="without tensor parallelism"):
        config(tensor_model_parallel_size=1, sequence_parallel=True)


@pytest.mark.parametrize(("tp", "accepted"), [(4, True), (16, True), (3, False), (32, False)])
def test_tensor_parallelism_divides_heads(tp: int, *, accepted: bool) -> None:
    """16 heads and 8 query groups; more ranks than groups are legal there and not offered here."""
    if accepted:
        assert config(tensor_model_parallel_size=tp)
    else:
        with pytest.raises(ValueError, match="must be a multiple"):
            config(tensor_model_parallel_size=tp)
