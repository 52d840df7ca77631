"""Problems whose enumeration is hopeless end in time, and those that nothing fits end at all."""

from time import monotonic

import pytest

from costmodel.hardware.read import load_cluster
from costmodel.job import Job
from costmodel.model.read import load_model
from planner import plan
from planner.exact import all_templates
from planner.kernels import make_ready
from planner.pricing import priced
from planner.search import proof_clock
from planner.watch import Watch
from tests.planner.tiny import tiny_problem

SLOW_MACHINE_S = 4.0


def cluster_of(nodes: int, chips_per_node: int, chip: str, network: str) -> dict[str, object]:
    return {
        "name": "one pool",
        "class_defaults": True,
        "pools": [
            {
                "name": "p0",
                "island": "a",
                "nodes": nodes,
                "chips_per_node": chips_per_node,
                "chip": chip,
                "scale_up": "pcie4-x16",
                "scale_out": {"link": network, "nics": 1},
            }
        ],
    }


@pytest.mark.parametrize(
    ("model", "cluster", "batch"),
    [
        ("nemotron-h-56b", cluster_of(7, 4, "mthreads-s4000", "roce-400g"), 1),
        ("bloom-176b", cluster_of(13, 4, "nvidia-l20", "slingshot-200g"), 60),
    ],
)
def test_deep_pipelines_on_few_chips_end_in_time(
    model: str, cluster: dict[str, object], batch: int
) -> None:
    make_ready()
    started = monotonic()
    job = Job(global_batch_size=batch, sequence_length=1000)

    plan(load_model(model), load_cluster(cluster), job, time_limit_s=0.5)

    assert monotonic() - started < 0.5 + SLOW_MACHINE_S


def test_a_proof_that_nothing_fits_is_no_crash() -> None:
    job = Job(global_batch_size=127, sequence_length=1_048_576, micro_batch_size=2)
    cluster = load_cluster(cluster_of(100, 3, "iluvatar-bi-v150", "roce-800g"))

    found = plan(load_model("internlm2-7b"), cluster, job, time_limit_s=1.0)

    assert found.status == "infeasible"


def test_listing_templates_asks_the_clock() -> None:
    instance = priced(*tiny_problem(0))

    assert all_templates(instance, float("inf"), expired=lambda: True) is None
    assert all_templates(instance, float("inf")) is not None


@pytest.mark.parametrize(("limit_s", "least_s"), [(0.1, 0.1), (0.0, 0.0)])
def test_a_proof_gets_no_longer_than_the_search(limit_s: float, least_s: float) -> None:
    late = Watch(limit_s=limit_s, start_s=monotonic() - 10.0)

    assert proof_clock(late).limit_s == least_s
