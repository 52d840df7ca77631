"""What layouts are evaluated for."""

from dataclasses import dataclass

from costmodel.efficiency import DEFAULT_EFFICIENCY, Efficiency
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.model.graph import ModelGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A model, a cluster and a job, and how well the software uses the hardware."""

    model: ModelGraph
    cluster: Cluster
    job: Job
    efficiency: Efficiency = DEFAULT_EFFICIENCY
