"""The plan on the front page is what haplan predicts for that layout today."""

from collections.abc import Mapping
from typing import Any

from costmodel import Job, estimate, load_cluster, load_model
from service.cli.text.quantities import GIB, seconds, seconds_pair
from tests.project.sources import ROOT

STAGES = (
    ("h20", 4, 16, (5, 5, 5)),
    ("h100", 2, 8, (13, 13, 13, 13)),
    ("a800", 4, 16, (9, 10, 8)),
)
"""Pool, tp, ep and layers of each stage of the plan that the front page shows."""


def layout() -> dict[str, Any]:
    stages: list[dict[str, Any]] = []
    for pool, tp, ep, layers in STAGES:
        stages += [{"pool": pool, "tp": tp, "ep": ep, "replicas": 4, "n": n} for n in layers]
    first = 0
    for stage in stages:
        last = first + stage.pop("n")
        stage["chunks"], first = [[first, last]], last
    return {"pipelines": [{"count": 8, "microbatches": 32, "stages": stages}]}


def cells(stage: Mapping[str, Any]) -> str:
    """Times and memory as the table shows them."""
    times = seconds_pair(stage["forward_s"], stage["backward_s"])
    used, capacity = (stage["memory"][key] / GIB for key in ("peak", "capacity"))
    return f"{times}   {used:.1f}/{capacity:.1f}\n"


def test_the_front_page_shows_what_is_predicted() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found: dict[str, Any] = estimate(
        load_model("qwen3-235b-a22b"),
        load_cluster("h100-a800-h20-1024"),
        Job(global_batch_size=1024, sequence_length=4096),
        layout(),
    ).document()
    low, high = found["prediction"]["interval_s"]
    time = found["prediction"]["step_time_s"]

    assert f"step time      {seconds(time)}  (90 %: {seconds(low)} to {seconds(high)})" in text
    stages = found["pipelines"][0]["stages"]
    assert [n for n in (0, 1, 3, 9) if cells(stages[n]) not in text] == []
