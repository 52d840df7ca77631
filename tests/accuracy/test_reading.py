"""From a measured case to model, cluster and layout, or to the reason why not."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from costmodel.calibration.case import Case, case_of
from costmodel.calibration.clusters import cluster_of
from costmodel.calibration.completion import completed
from costmodel.calibration.convention import MEGATRON_CI, NANOTRON, Convention, convention
from costmodel.calibration.layouts import job_of, layout_of
from costmodel.calibration.models import Reading, model_of
from costmodel.calibration.prepare import prepare
from costmodel.calibration.read import MOST_FAULTS, read_cases, read_some_cases
from costmodel.calibration.score import Scored, Skipped, score, score_all
from costmodel.errors import InputError
from costmodel.model.flops import flops_per_token
from costmodel.model.parameters import parameter_counts

ROW: Mapping[str, Any] = {
    "id": "one",
    "source": "made up",
    "stack": "unknown",
    "url": "https://example.org",
    "quality": "A",
    "model": {
        "name": "small",
        "layers": 32,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 8,
        "ffn_hidden": 14336,
        "gated_mlp": True,
        "vocab": 128256,
        "seq": 4096,
        "tied": False,
    },
    "hardware": {"chip": "nvidia-h100-sxm-80g", "n_chips": 32, "chips_per_node": 8},
    "parallel": {"tp": 4, "pp": 4, "dp": 2, "mbs": 1, "gbs": 32, "recompute": "none"},
    "measured": {"step_time_s": 1.0, "peak_memory_bytes": 5e10},
}


def case(**changes: Mapping[str, Any]) -> Case:
    """The row with these values changed in its sections (or at its top level)."""
    row: dict[str, Any] = dict(ROW)
    for section, values in changes.items():
        row[section] = {**ROW[section], **values}
    return case_of(row)


def reading(one: Case, how: Convention | None = None) -> Reading:
    return Reading(case=one, convention=how or convention(one))


def reason(one: Case) -> str:
    result = score(one)
    assert isinstance(result, Skipped)
    return result.reason


def test_stated_dimensions_give_the_model() -> None:
    """Llama-3-8B by its dimensions has Llama-3-8B's parameters."""
    assert parameter_counts(model_of(reading(case()))).total == 8_030_261_248


def test_interleaved_chunks_are_in_virtual_order() -> None:
    one = case(parallel={"vp": 2})
    r = reading(one)
    layout = layout_of(r, job_of(r), 32)
    stages = layout.pipelines[0].stages

    assert layout.schedule.virtual_stages == 2
    assert stages[0].chunks == ((0, 4), (16, 20))
    assert stages[3].chunks == ((12, 16), (28, 32))
    assert [(s.embedding, s.head) for s in stages] == [
        (True, False),
        (False, False),
        (False, False),
        (False, True),
    ]
    assert layout.samples == 32


def test_nanotron_gives_the_first_stage_more_layers() -> None:
    """Llama-3-8B on eight stages: nanotron's own log shows five layers, then four."""
    one = case(parallel={"pp": 8, "dp": 1})
    r = reading(one, NANOTRON)
    layout = layout_of(r, job_of(r), 32)

    assert [s.num_layers for s in layout.pipelines[0].stages][:2] == [5, 4]
    assert sum(s.num_layers for s in layout.pipelines[0].stages) == 32


def test_the_text_names_the_network() -> None:
    stated = cluster_of(reading(case(hardware={"scale_out": "4x200G HDR IB"}))).pools[0]
    assumed = reading(case())
    pool = cluster_of(assumed).pools[0]

    assert (stated.scale_out.name, stated.nics) == ("infiniband-hdr", 4)
    assert (pool.scale_up.name, pool.scale_out.name, pool.nics) == ("nvlink4", "infiniband-ndr", 8)
    assert any("network not stated" in sentence for sentence in assumed.assumptions)


def test_what_is_completed_is_recorded() -> None:
    """Without a word on recomputation, sharding or sequence parallelism each gets a sentence."""
    result = score(case(parallel={"recompute": None}))

    assert isinstance(result, Scored)
    said = " ".join(result.assumptions)
    assert "recomputation not stated" in said
    assert "sharding not stated" in said
    assert "sequence parallelism not stated" in said


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"hardware": {"chip": "abacus"}}, "chip abacus has no profile"),
        ({"hardware": {"n_chips": None}}, "hardware n_chips not stated"),
        ({"hardware": {"n_chips": 24}}, "chips are not a multiple of tp pp cp"),
        ({"parallel": {"dp": 4}}, "chips differ from tp pp cp dp"),
        ({"parallel": {"gbs": 33}}, "batch is not a multiple of mbs dp"),
        ({"parallel": {"gbs": 12, "vp": 2}}, "micro-batches are not a multiple of pp"),
        ({"parallel": {"precision": "int4"}}, "precision int4 not modelled"),
        ({"parallel": {"ep": 3}}, "not a multiple of ep etp"),
        ({"model": {"vocab": None}}, "model vocab not stated"),
        ({"model": {"name": "bert-large"}}, "layers of bert models are not stated"),
        ({"model": {"layers": 1}}, "fewer layers than stages"),
        ({"parallel": {"tp": None, "pp": None, "dp": None}}, "layout not stated"),
        ({"measured": {"step_time_s": None, "peak_memory_bytes": None}}, "nothing measured"),
    ],
)
def test_what_cannot_be_scored_says_why(
    changes: Mapping[str, Mapping[str, Any]], expected: str
) -> None:
    assert expected in reason(case(**changes))


def test_expert_layers_follow_the_stated_pattern() -> None:
    experts = {"experts": 4, "topk": 2, "layers": 14, "moe_layer_freq": "([0]*3+[1]*11)"}
    graph = model_of(reading(case(model=experts)))

    assert graph.layers == ("dense",) * 3 + ("moe",) * 11


def test_step_time_follows_from_tokens_per_second() -> None:
    one = case(measured={"step_time_s": None, "tokens_per_s_per_chip": 4096.0})

    assert prepare(one).step_s == pytest.approx(32 * 4096 / (4096.0 * 32))


def test_step_time_follows_from_the_flop_rate_as_the_stack_counts() -> None:
    """All of the attention square and the recomputed forward count in 2021, half of it today."""
    rate = {"step_time_s": None, "tflops_per_chip": 400.0}
    now = case(measured=rate, parallel={"recompute": "full"})
    then = replace(now, stack="megatron-2021")
    prepared = prepare(now)
    flop = flops_per_token(prepared.problem.model, 4096) * 32 * 4096

    assert prepared.step_s == pytest.approx(flop / (400e12 * 32))
    assert 4 / 3 < (prepare(then).step_s or 0.0) / (prepared.step_s or 1.0) < 1.6


def test_open_settings_are_completed_by_rule() -> None:
    experts = {"experts": 8, "ffn_hidden": 14336}
    one = completed(case(model=experts, parallel={"mbs": None, "gbs": None}), Convention())

    assert one.case.parallel.size("ep") == 2
    assert one.case.model.size("topk") == 2
    assert (one.case.parallel.size("mbs"), one.case.parallel.size("gbs")) == (1, 64)
    assert len(one.assumptions) == 4


def test_frozen_weights_take_less_time_and_memory() -> None:
    whole, adapters = (score(case(parallel=p)) for p in ({}, {"method": "lora"}))

    assert isinstance(whole, Scored)
    assert isinstance(adapters, Scored)
    for metric in ("time", "peak"):
        assert adapters.pairs[metric].predicted < 0.85 * whole.pairs[metric].predicted


def test_layers_recompute_as_far_as_memory_needs() -> None:
    """A share between none and all, when neither fits comfortably nor everything is needed."""
    open_case = case(parallel={"recompute": None, "mbs": 16, "gbs": 256, "dp": 2})
    prepared = prepare(open_case)

    assert [round(share, 1) for _, share in prepared.layouts] != [1.0]
    assert sum(share for _, share in prepared.layouts) == pytest.approx(1.0)


def test_a_core_is_a_part_of_its_chip() -> None:
    core = {"chip": "aws-trainium1", "chips_per_node": 32}
    pool = cluster_of(reading(case(hardware=core))).pools[0]

    assert pool.chip.peak("bf16") == pytest.approx(95e12)


def test_the_first_precision_of_a_text_counts() -> None:
    one = case(parallel={"precision": "BF16 + FP32 grad accumulation"})

    assert job_of(reading(one)).precision == "bf16"


def test_low_quality_is_left_out_by_name() -> None:
    row = {**ROW, "quality": "C"}

    scored, skipped = score_all([case_of(row)])

    assert scored == []
    assert [s.reason for s in skipped] == ["quality C"]


def test_small_test_models_store_their_scores_unless_they_resume() -> None:
    def fused(name: str, **parallel: int) -> bool:
        row = {**ROW, "stack": "megatron-ci", "model": {"name": name, "toy": True}}
        return convention(case_of({**row, "parallel": parallel})).fused_attention

    assert not fused("gpt:gpt3_mcore_te_tp1_pp1")
    assert fused("gpt:gpt3_mcore_te_tp1_pp1_resume_torch_dist")
    assert fused("gpt:gpt3_mcore_te_tp1_pp1", cp=2)
    assert not fused("gpt:gpt3_mcore_tp1_pp1_resume_torch_dist")


def test_workspaces_grow_with_hopper() -> None:
    """Two of PyTorch's and one of Transformer Engine's: 68 MiB on A100, 96 MiB on H100."""
    assert MEGATRON_CI.workspace_bytes("nvidia-a100-sxm-80g") == 68 * 2**20
    assert MEGATRON_CI.workspace_bytes("nvidia-h100-sxm-80g") == 96 * 2**20


def test_files_are_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(dict(ROW)) + "\n\n" + json.dumps({**ROW, "id": "two"}) + "\n")

    assert [c.id for c in read_cases([path])] == ["one", "two"]


def test_a_line_that_is_no_case_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(dict(ROW)) + '\n{"id": "two"}\n')

    with pytest.raises(InputError, match=r"cases.jsonl:2: .* add model, measured"):
        read_cases([path])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give the path of a file"):
        read_cases([tmp_path / "none.jsonl"])


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text(json.dumps({**ROW, "id": "two"}) + "\n")
    (tmp_path / "a.jsonl").write_text(json.dumps(dict(ROW)) + "\n")
    (tmp_path / "notes.txt").write_text("no case")

    assert [c.id for c in read_some_cases([tmp_path])] == ["one", "two"]


def test_a_file_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(ROW))
    (tmp_path / "b.jsonl").write_text(json.dumps({**ROW, "id": "two"}))
    twice = [tmp_path / "b.jsonl", tmp_path, tmp_path / "b.jsonl"]

    assert [case.id for case in read_some_cases(twice)] == ["two", "one"]


def test_a_folder_without_cases_and_an_empty_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must hold \*\.jsonl files"):
        read_some_cases([tmp_path])
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n")

    with pytest.raises(InputError, match=r"empty\.jsonl: .*nothing to score"):
        read_some_cases([empty])


def test_all_faults_of_all_files_come_at_once(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    one.write_text('{"id": 1,\n' + json.dumps(dict(ROW)) + "\n[1]\nno\n")
    two.write_bytes(json.dumps({**ROW, "model": 3}).encode() + b"\n\xff\n")

    with pytest.raises(InputError) as caught:
        read_cases([one, two, tmp_path / "none.jsonl"])
    fields = [violation.field.removeprefix(f"{tmp_path}/") for violation in caught.value.violations]

    assert fields == [
        "one.jsonl:1",
        "one.jsonl:3",
        "one.jsonl:4",
        "two.jsonl:1",
        "two.jsonl:2",
        "none.jsonl",
    ]
    assert "one JSON object on the line" in str(caught.value)


def test_a_file_of_another_kind_is_refused_in_a_few_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("step 1\n" * 1000)

    with pytest.raises(InputError, match="980 more") as caught:
        read_cases([path])
    assert len(caught.value.violations) == MOST_FAULTS + 1


def test_sums_that_wait_are_held_as_far_as_memory_reaches() -> None:
    """Two whole outputs a layer, ``2 h`` bytes a token each; never beyond the chip's memory."""
    small, large = (
        case(parallel={"pp": 1, "dp": 8, "gbs": 8 * mbs, "mbs": mbs}) for mbs in (1, 64)
    )
    base = {c.parallel.size("mbs"): peak(c, "unknown") for c in (small, large)}
    held = {c.parallel.size("mbs"): peak(c, "nanotron") for c in (small, large)}

    assert held[1] - base[1] > 2 * 32 * 2 * 4096 * 4096
    assert base[64] < held[64] < 1.3 * base[64]


def peak(one: Case, stack: str) -> float:
    result = score(replace(one, stack=stack))
    assert isinstance(result, Scored)
    return result.pairs["peak"].predicted
