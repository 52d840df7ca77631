"""Every target: its rules have names, sentences and examples; options it keeps break none."""

import pytest

from costmodel.errors import UnknownNameError
from costmodel.hardware.read import load_cluster
from costmodel.job import Job
from costmodel.layout.values import Layout, Pipeline, Stage
from costmodel.model.read import load_model
from costmodel.problem import Problem
from planner.space import declare
from planner.targets.registry import (
    LAUNCHABLE,
    check_target,
    maintained_targets,
    target_called,
    target_names,
    targets,
)
from planner.targets.target import Shape, Target
from tests.planner.targets.examples import all_rules, broken_case, good_case
from tests.project.sources import ROOT

ALL = tuple(targets().values())
PAGE = ROOT / "docs" / "targets.md"


def broken_rules(target: Target, problem: Problem, layout: Layout) -> set[str]:
    found = target.violations(problem, layout)
    return {v.rule.rsplit("[", 1)[1].rstrip("]") for v in found}


@pytest.mark.parametrize("target", ALL, ids=lambda t: t.label)
def test_a_usual_layout_is_executed(target: Target) -> None:
    case = good_case(target)

    assert target.violations(case.problem, case.layout) == ()
    assert target.allows(case.problem, case.layout)


@pytest.mark.parametrize(
    ("target", "rule_id"), all_rules(), ids=[f"{t.label}-{r}" for t, r in all_rules()]
)
def test_each_rule_finds_what_breaks_it(target: Target, rule_id: str) -> None:
    case = broken_case(target, rule_id)
    found = [
        v
        for v in target.violations(case.problem, case.layout)
        if f"{target.name}.{rule_id}]" in v.rule
    ]

    assert found
    assert all(v.field.startswith("/") and v.fix for v in found)
    [rule] = [r for r in target.rules if r.id == rule_id]
    options = [s.option for p in case.layout.pipelines for s in p.stages]
    if rule.keeps is None:
        assert not target.allows(case.problem, case.layout)
    else:
        assert any(target.broken_by(case.problem, option) for option in options)


@pytest.mark.parametrize("target", ALL, ids=lambda t: t.label)
def test_rules_have_names_and_sentences(target: Target) -> None:
    ids = [rule.id for rule in target.rules]

    assert len(set(ids)) == len(ids)
    assert all(rule.sentence.endswith(".") for rule in target.rules)
    assert target.title
    assert target.source or not target.rules


@pytest.mark.parametrize("model_name", ["llama3-8b", "mixtral-8x7b"])
@pytest.mark.parametrize("target", ALL, ids=lambda t: t.label)
def test_options_that_are_kept_break_no_rule_on_stages(target: Target, model_name: str) -> None:
    model, cluster = load_model(model_name), load_cluster("ascend910b-c500-1024")
    job = Job(global_batch_size=256, sequence_length=4096)
    problem = Problem(model=model, cluster=cluster, job=job)
    space = declare(model, cluster, job, target=target.label, evaluator="1")

    assert space.target == target.label
    for option in space.options[:: max(1, len(space.options) // 100)]:
        stage = Stage(option=option, chunks=((0, model.num_layers),), embedding=True, head=True)
        layout = Layout(pipelines=(Pipeline(stages=(stage,), microbatches=256 // option.samples),))
        assert broken_rules(target, problem, layout) == set()


def test_rules_clip_the_space_under_their_names() -> None:
    model, cluster = load_model("llama3-8b"), load_cluster("hybrid-64")
    job = Job(global_batch_size=256, sequence_length=4096)

    space = declare(model, cluster, job, target="megatron@0.16", evaluator="1")

    assert space.pruned["megatron.zero"] > 0
    assert {option.zero for option in space.options} == {1}


def test_names_versions_and_defaults() -> None:
    assert target_called("megatron").label == "megatron@0.16"
    assert target_called("megatron@0.20").version == "0.20"
    assert {t.name for t in maintained_targets()} == {
        "megatron",
        "flagscale",
        "torchtitan",
        "deepspeed",
        "mindspeed",
    }
    assert {LAUNCHABLE, "megatron", "megatron@0.16", "any", "runner"} <= set(target_names())
    with pytest.raises(UnknownNameError, match="megatron"):
        check_target("megatronn")
    with pytest.raises(UnknownNameError, match="megatron"):
        target_called("megatron@0.1")


def test_shapes_add_up() -> None:
    assert target_called("any").shape == Shape()
    assert target_called("deepspeed").shape.even_split
    assert "tp" in target_called("megatron").shape.equal
    assert target_called("flagscale").shape.one_shape
    assert not target_called("flagscale").shape.one_vendor


@pytest.mark.parametrize("target", ALL, ids=lambda t: t.label)
def test_the_page_lists_every_rule(target: Target) -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert f"`{target.label}`" in page
    for rule in target.rules:
        assert f"| `{rule.id}` | {rule.sentence} |" in page
