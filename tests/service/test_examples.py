"""Every example that is shown runs and ends as it should: those of `--help` and of the page."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import uvicorn

from costmodel.hardware.read import load_cluster
from service.cli.commands import REGISTER
from service.cli.main import build_app, run
from tests.project.sources import ROOT

SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED_BLOCK = re.compile(r"^`([a-z.]+)`\n```[a-z]+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
QUICK = {"plan": ["--time-limit", "3"]}
"""What is added so that an example takes no longer than a test may."""
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
JOB = "--global-batch-size 1024 --sequence-length 4096"


def examples_of_help() -> list[str]:
    """The commands in every epilog."""
    commands = build_app().registered_commands
    epilogs = [str(command.epilog) for command in commands]
    lines = [line.strip() for epilog in epilogs for line in epilog.splitlines()]
    return [line for line in lines if line.startswith("haplan ")]


def examples_of_page() -> list[str]:
    """The commands in the code blocks of the page, in its order."""
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    blocks: list[str] = SHELL_BLOCK.findall(text)
    return [line for block in blocks for line in block.splitlines() if line.startswith("haplan ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every file that the examples name."""
    path = tmp_path_factory.mktemp("examples")
    cases = ROOT / "tests" / "accuracy" / "cases"
    shutil.copy(cases / "megatron_sc21_table_1.jsonl", path / "runs.jsonl")
    shutil.copy(cases / "korthikanti_2022_table_5.jsonl", path / "more.jsonl")
    samples = ROOT / "tests" / "calibrate" / "samples"
    shutil.copy(samples / "h100_8_all_reduce.txt", path / "all_reduce.txt")
    shutil.copy(samples / "a100_pcie_gemm.csv", path / "gemm.csv")
    (path / "two_nodes").mkdir()
    shutil.copy(samples / "polaris_8_all_reduce.txt", path / "two_nodes")
    calibrate = ["calibrate", str(path / "gemm.csv"), "--chip", "nvidia-h100-sxm-80g"]
    assert run([*calibrate, "--into", str(path / "profiles")]) == 0
    stack = "efficiency: {gemm: {value: 0.8}}\n"
    (path / "our-stack.yaml").write_text(stack, encoding="utf-8")
    (path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    cluster = json.dumps(dict(load_cluster("hybrid-64").document))
    (path / "cluster.yaml").write_text(cluster, encoding="utf-8")
    job = {"global_batch_size": 64, "sequence_length": 4096}
    case = {"name": "one", "model": "llama3-8b", "cluster": "hybrid-64", "job": job}
    suite = json.dumps({"cases": [case | {"time_limit_s": 8}]})
    (path / "suite.yaml").write_text(suite, encoding="utf-8")
    plan = shlex.split(f"plan llama3-70b hybrid-64 {JOB} --time-limit 3")
    assert run([*plan, "-o", str(path / "plan.json")]) == 0
    regress = ["regress", str(path / "suite.yaml"), "--baseline", str(path / "baseline.json")]
    assert run([*regress, "--update"]) == 0
    return path


@pytest.mark.parametrize("example", [*dict.fromkeys(examples_of_help() + examples_of_page())])
def test_an_example_runs(
    example: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    served: list[object] = []

    def serve(app: object, **_options: object) -> None:
        served.append(app)

    monkeypatch.setattr(uvicorn, "run", serve)
    _, command, *rest = shlex.split(example)

    code = run([command, *rest, *QUICK.get(command, [])])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    assert len(served) == (command == "serve")
    if "--format json" in example and "-o" not in rest:
        json.loads(captured.out)


def test_getting_started_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    files: list[tuple[str, str]] = NAMED_BLOCK.findall(text)
    assert {name for name, _ in files} == {"config.json", "cluster.yaml", "suite.yaml"}
    for name, content in files:
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    commands = "".join(SHELL_BLOCK.findall(text)).splitlines()
    codes = {line: run(shlex.split(line)[1:]) for line in commands}

    assert {line: code for line, code in codes.items() if code} == {}, capsys.readouterr().err


def test_every_command_has_an_example() -> None:
    shown = {shlex.split(example)[1] for example in examples_of_help()}

    assert len(shown) == len(REGISTER)
    assert len(examples_of_page()) >= 7
