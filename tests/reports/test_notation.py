"""Reports on pipeline layout strings."""

import pytest

from costmodel.layout.notation import check_notation, notation_warnings, read_notation
from costmodel.layout.read import load_layout
from tests.reports.catalogue import report
from tests.reports.setting import asked, chips, dense, named, refusals

DEEPSEEK_LAYERS = 61


def faults(text: str, *, layers: int, stages: int, mtp: int = 0) -> list[str]:
    found = check_notation(read_notation(text), num_layers=layers, mtp=mtp, num_stages=stages)
    return [violation.rule for violation in found]


@report("14")
def test_empty_stage_in_a_string() -> None:
    found = faults("Et|(tt|)*29|L", layers=DEEPSEEK_LAYERS, stages=32)

    assert "must have the model's 61 layers" in found
    assert "must leave no stage without anything" in found
    assert sum(stage.layers for stage in read_notation("Et|(tt|)*29|L")) == 59
    assert faults("Et|(tt|)*30L", layers=DEEPSEEK_LAYERS, stages=32) == []


@report("15")
@pytest.mark.parametrize("text", ["Et|(tt|)*30mL", "Et*3|(tt|)*29m|L", "Et*2|(tt|)*22t|(tt|)*7mL"])
@pytest.mark.parametrize(("pp", "vp"), [(16, 2), (8, 4)])
def test_strings_in_use_for_deepseek(text: str, pp: int, vp: int) -> None:
    where = asked(named("deepseek-v3"), chips(128), global_batch_size=1024)
    line = f"pp={pp},vp={vp},dp={128 // pp},ep=8,layout={text}"
    layout = load_layout(where, line)
    stages = layout.pipelines[0].stages

    assert faults(text, layers=DEEPSEEK_LAYERS, stages=32, mtp=1) == []
    assert len(stages) == pp
    assert sum(stage.num_layers for stage in stages) == DEEPSEEK_LAYERS
    assert sum(len(stage.chunks) for stage in stages) == 32
    assert sum(stage.mtp for stage in stages) == 1


@report("17")
def test_string_for_llama() -> None:
    where = asked(named("llama3-70b"), 32)
    text = "Et*2|(t*2|)*34,t*3|(t*2|)*3,tL"
    stages = load_layout(where, f"tp=4,pp=8,vp=5,layout={text}").pipelines[0].stages

    assert sum(stage.num_layers for stage in stages) == 80
    assert [len(stage.chunks) for stage in stages] == [5] * 8


@report("18")
def test_stage_of_mtp_alone() -> None:
    text = "E(|tt)*30,|mL"

    assert faults(text, layers=60, stages=32, mtp=1) == []
    assert faults(text, layers=60, stages=32, mtp=2) == [
        "must have as many m as the model's MTP depth 2"
    ]
    (warning,) = notation_warnings(read_notation(text))
    assert "no layer" in warning


@report("19")
def test_several_mtp_stages_and_a_split_loss() -> None:
    text = "E|(t|)*10m|m|m|LL|LL"
    warnings = notation_warnings(read_notation(text))

    assert faults(text, layers=10, stages=16, mtp=3) == []
    assert any("multi-token prediction on several stages" in w for w in warnings)
    assert any("loss split over stages" in w for w in warnings)
    where = asked(dense(num_hidden_layers=10), 8)
    found = refusals(where, "pp=8,vp=2,layout=E|(t|)*13LL|LL")
    assert any("must have one L to be estimated" in text for text in found)
