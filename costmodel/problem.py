"""What layouts are evaluated for."""

from dataclasses import dataclass

from costmodel.efficiency import DEFAULT_EFFICIENCY, Efficiency
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.model.graph import ModelGraph
from costmodel.software.read import efficiency_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A model, a cluster and a job, and how well the software uses the hardware.

    efficiency: where it is not given, that of the job's software.
    """

    model: ModelGraph
    cluster: Cluster
    job: Job
    efficiency: Efficiency = DEFAULT_EFFICIENCY

    def __post_init__(self) -> None:
        """Take the constants of the job's software, unless others are given."""
        if self.job.software is not None and self.efficiency is DEFAULT_EFFICIENCY:
            object.__setattr__(self, "efficiency", efficiency_of(self.job.software))
