"""Predicts what one parallel layout costs on one cluster: time, memory and traffic."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from costmodel.batch.rows import UniformGrid
    from costmodel.batch.score import score_uniform
    from costmodel.estimation import estimate
    from costmodel.hardware.read import load_cluster
    from costmodel.job import Job
    from costmodel.jobs.read import load_job
    from costmodel.model.read import load_model

__all__ = [
    "Job",
    "UniformGrid",
    "estimate",
    "load_cluster",
    "load_job",
    "load_model",
    "score_uniform",
]

_HOMES = {
    "Job": "costmodel.job",
    "UniformGrid": "costmodel.batch.rows",
    "estimate": "costmodel.estimation",
    "load_cluster": "costmodel.hardware.read",
    "load_job": "costmodel.jobs.read",
    "load_model": "costmodel.model.read",
    "score_uniform": "costmodel.batch.score",
}


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used, so that importing the package stays cheap."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
