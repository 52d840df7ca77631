"""AMP: one dp, mp and pp for all, devices in the given order, layers split unevenly."""

from costmodel.layout.values import Layout
from planner.baselines.baseline import BaselineRule, Setting, best_of
from planner.instance import Draft, Instance
from planner.mesh_search import pipeline_s
from planner.meshes import balanced_draft, meshes

TRIED = 600
SCORED = 24


def propose(setting: Setting) -> Layout | None:
    """The best over degrees; the split minimises the slowest stage by dynamic programming.

    AMP has no memory model; here only layouts that fit count.
    """
    return best_of(setting.instance, _drafts(setting.instance))


def _drafts(instance: Instance) -> list[Draft]:
    order = tuple(range(len(instance.chips)))
    sketches = sorted(meshes(instance, [order]), key=lambda mesh: mesh.quick_s)
    numbered = [mesh for mesh in sketches if not mesh.side_by_side][:TRIED]
    dealt = (balanced_draft(instance, mesh) for mesh in numbered)
    fitting = [draft for draft in dealt if draft is not None]
    return sorted(fitting, key=lambda draft: pipeline_s(instance, draft))[:SCORED]


BASELINE = BaselineRule(
    name="amp",
    sentence="One set of degrees for all, pools in the given order, layers split unevenly.",
    source="AMP, NeurIPS 2022; github.com/DachengLi1/AMP",
    order=5,
    propose=propose,
)
