"""Plans are never slower than what simpler planners do, nor for more nodes."""

import pytest

from benchmarks.clusters import JOBS, MODELS
from costmodel.hardware.read import load_cluster
from costmodel.model.read import load_model
from planner import plan
from planner.node_values import with_more
from planner.wishes import Wishes

LIMIT_S = 120.0


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("cluster", [name for name in JOBS if name != "mixed-102400"])
def test_no_baseline_is_faster(cluster: str, model: str) -> None:
    found = plan(
        load_model(model),
        load_cluster(cluster),
        JOBS[cluster],
        target="any",
        time_limit_s=LIMIT_S,
        wishes=Wishes(every_baseline=True),
    )

    times = {b.name: b.step_time_s for b in found.baselines if b.step_time_s is not None}
    faster = {name: s for name, s in times.items() if s < found.step_time_s * (1 - 1e-9)}
    assert faster == {}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["llama3-70b", "mixtral-8x22b"])
@pytest.mark.parametrize("cluster", ["hybrid-64", "a100-v100-256", "h100-a800-h20-1024"])
def test_more_nodes_are_never_slower(cluster: str, model: str) -> None:
    now = load_cluster(cluster)
    graph, job = load_model(model), JOBS[cluster]
    before_s = plan(graph, now, job, target="any", time_limit_s=LIMIT_S).step_time_s

    for pool in now.pools:
        more = with_more(now, pool, 1)
        after_s = plan(graph, more, job, target="any", time_limit_s=LIMIT_S).step_time_s
        assert after_s <= before_s * (1 + 1e-9), pool.name
