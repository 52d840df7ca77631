"""Plans and certificates on the target problems: ``python benchmarks/plan_bounds.py [NAME...]``.

Prints for each problem the seconds of search, the seconds to within 1 % of the final plan, the
seconds of proving, step time, bound, gap and method.
"""

import sys
from dataclasses import dataclass
from time import monotonic
from typing import Any

from costmodel.hardware.read import load_cluster
from costmodel.job import Job
from costmodel.model.read import load_model, read_config
from planner import plan
from planner.wishes import Wishes


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A problem of the search for the target ``any``, and seconds for its proof."""

    model: str
    cluster: str
    batch: int
    tokens: int
    prove_s: float
    precision: str = "bf16"


GPT3 = {
    "model_type": "gpt2",
    "n_embd": 12288,
    "n_layer": 96,
    "n_head": 96,
    "vocab_size": 50257,
    "n_positions": 2048,
    "n_inner": None,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True,
}
"""Table 2.1 of arXiv 2005.14165, the 175B model."""


def _pool(name: str, chip: str, scale_up: str, scale_out: str, nics: int) -> dict[str, Any]:
    links = {"scale_up": scale_up, "scale_out": {"link": scale_out, "nics": nics}}
    shape = {"nodes": 32, "chips_per_node": 8, "chip": chip}
    return {"name": name, "island": name} | shape | links


ONE = {
    "name": "h100-1024",
    "class_defaults": True,
    "pools": [
        _pool("h100", "nvidia-h100-sxm-80g", "nvlink4", "infiniband-ndr", 8) | {"nodes": 128}
    ],
}
THREE = {
    "name": "a100-v100-h20-768",
    "class_defaults": True,
    "pools": [
        _pool("a100", "nvidia-a100-sxm-40g", "nvlink3", "infiniband-hdr", 4),
        _pool("v100", "nvidia-v100-sxm-32g", "nvlink2", "infiniband-edr", 4),
        _pool("h20", "nvidia-h20-96g", "nvlink4", "roce-400g", 4),
    ],
    "between_islands": {"link": "ethernet-100g", "nics": 1, "oversubscription": 4},
}
OWN: dict[str, dict[str, Any]] = {"h100-1024": ONE, "a100-v100-h20-768": THREE}
CASES = {
    "one": Case(model="gpt3", cluster="h100-1024", batch=1536, tokens=2048, prove_s=10),
    "three": Case(
        model="llama3-8b",
        cluster="a100-v100-h20-768",
        batch=1024,
        tokens=4096,
        prove_s=10,
        precision="fp16",
    ),
    "mixed": Case(
        model="llama3.1-405b", cluster="mixed-10240", batch=4096, tokens=8192, prove_s=60
    ),
    "qwen": Case(
        model="qwen3-235b-a22b", cluster="mixed-10240", batch=4096, tokens=4096, prove_s=60
    ),
    "deepseek": Case(
        model="deepseek-v3", cluster="mixed-10240", batch=15360, tokens=4096, prove_s=60
    ),
    "hybrid": Case(model="llama3-70b", cluster="hybrid-64", batch=1024, tokens=4096, prove_s=10),
}


def row(name: str) -> str:
    """The line of one problem."""
    case = CASES[name]
    model = read_config(GPT3, name="gpt3-175b") if case.model == "gpt3" else load_model(case.model)
    job = Job(global_batch_size=case.batch, sequence_length=case.tokens, precision=case.precision)
    start = monotonic()
    cluster = load_cluster(OWN.get(case.cluster, case.cluster))
    found = plan(model, cluster, job, target="any", wishes=Wishes(prove_s=case.prove_s))
    assert found.bound is not None
    search_s, bound = found.effort.elapsed_s, found.bound
    return (
        f"{name:9} {search_s:7.1f} {found.effort.first_within_1pct_s:7.1f} "
        f"{monotonic() - start - search_s:7.1f} {found.step_time_s:9.3f} "
        f"{bound.step_time_s:9.3f} {100 * bound.gap:7.1f} {bound.method}"
    )


def main() -> None:
    """All problems, or those named."""
    print("problem   plan s  in 1 %   proof    step s   bound s   gap %  method")
    for name in sys.argv[1:] or CASES:
        print(row(name), flush=True)


if __name__ == "__main__":
    main()
