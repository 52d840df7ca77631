"""Problems of ``benchmarks/problems``: model, cluster, job and space as they were when frozen."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from costmodel.hardware.read import load_cluster
from costmodel.hardware.values import Cluster
from costmodel.job import Job
from costmodel.model.graph import ModelGraph
from costmodel.model.read import read_config
from costmodel.step import EVALUATOR_VERSION
from planner.space import declare

FOLDER = Path(__file__).parent / "problems"


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """Seconds to within 1 % of the final plan, seconds to the proof, and the gap."""

    within_1pct_s: float
    certificate_s: float
    gap: float


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Frozen:
    """One problem; prove_s: seconds of proving after the search, whose limit is time_limit_s."""

    name: str
    title: str
    model: ModelGraph
    cluster: Cluster
    job: Job
    target: str
    time_limit_s: float
    prove_s: float
    aim: Aim
    space: dict[str, Any]

    def changes(self) -> list[str]:
        """Parts of the space that are no longer what was frozen."""
        space = declare(
            self.model, self.cluster, self.job, target=self.target, evaluator=EVALUATOR_VERSION
        )
        now = json.loads(json.dumps({"version": space.version, **space.document()}))
        then = {"version": self.space["version"], **self.space["document"]}
        return [key for key in sorted(then) if then[key] != now.get(key)]


@cache
def problem_names() -> tuple[str, ...]:
    """Of all files, in their order."""
    return tuple(path.stem.split("-", 1)[1] for path in sorted(FOLDER.glob("*.json")))


def frozen(name: str) -> Frozen:
    """The problem of that name. Raises KeyError for one that is not there."""
    (path,) = FOLDER.glob(f"?-{name}.json") if name in problem_names() else (None,)
    if path is None:
        raise KeyError(name)
    document = json.loads(path.read_text(encoding="utf-8"))
    return Frozen(
        name=name,
        title=document["title"],
        model=read_config(document["model"]["config"], name=document["model"]["name"]),
        cluster=load_cluster(document["cluster"]),
        job=Job(**document["job"]),
        target=document["target"],
        time_limit_s=document["time_limit_s"],
        prove_s=document["prove_s"],
        aim=Aim(**document["aim"]),
        space=document["space"],
    )
