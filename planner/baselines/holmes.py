"""Holmes: stages stay inside an island, layers in proportion to the speed of its pools."""

from collections.abc import Sequence
from itertools import islice

from costmodel.layout.values import Layout
from planner.baselines.baseline import BaselineRule, Setting, best_of, several_pools
from planner.instance import Draft, Entry, Instance, Template, fits_roughly, layout_of
from planner.mesh_search import pipeline_s
from planner.meshes import Mesh, cut_at, meshes
from planner.targets.layout_rules import even_cuts

TRIED = 200
SCORED = 24


def island_order(instance: Instance) -> tuple[int, ...]:
    """Pools with those of an island together, otherwise as they are given."""
    return tuple(sorted(range(len(instance.chips)), key=lambda k: (instance.islands[k], k)))


def propose(setting: Setting) -> Layout | None:
    """The best over degrees and micro-batches; placement and split follow from the rule."""
    return best_of(setting.instance, holmes_drafts(setting.instance))


def holmes_drafts(instance: Instance) -> list[Draft]:
    """Layouts by the rule that seem to fit, the quickest pipelines first."""
    sketches = sorted(meshes(instance, [island_order(instance)]), key=lambda mesh: mesh.quick_s)
    apart = (mesh for mesh in sketches if _stages_stay(mesh))
    drafts = [holmes_draft(instance, mesh) for mesh in islice(apart, TRIED)]
    fitting = [draft for draft in drafts if fits_roughly(instance, draft)]
    return sorted(fitting, key=lambda draft: pipeline_s(instance, draft))[:SCORED]


def _stages_stay(mesh: Mesh) -> bool:
    """Whether no stage lies in two pools."""
    return not mesh.side_by_side and all(number % mesh.copies == 0 for number in mesh.groups)


def holmes_draft(instance: Instance, mesh: Mesh) -> Draft:
    """The mesh with ``layers_k ~ L S_k n_k / sum S n`` for each pool, evenly over its stages.

    S_k: sequences per second and chip of pool k alone under the same degrees, as measured by one
    run on it; n_k: its stages. At least a layer a stage.
    """
    stages = [number // mesh.copies for number in mesh.groups]
    speeds = [_alone(instance, row, mesh, n) for row, n in zip(mesh.rows, stages, strict=True)]
    layers = dealt([s * n for s, n in zip(speeds, stages, strict=True)], stages, instance)
    cuts = [0]
    for held, number in zip(layers, stages, strict=True):
        cuts += [cuts[-1] + cut for cut in even_cuts(held, number)[1:]]
    return cut_at(mesh, tuple(cuts))


def _alone(instance: Instance, row: int, mesh: Mesh, stages: int) -> float:
    """Sequences per second and chip of one pool alone with the mesh's degrees."""
    cuts = even_cuts(instance.num_layers, stages)
    template = Template(rows=(row,) * stages, cuts=cuts)
    entry = Entry(template=template, count=mesh.copies, microbatches=mesh.microbatches)
    seconds = instance.evaluate(layout_of(instance, (entry,))).pipeline_s
    return 1.0 / (seconds * stages)


def dealt(weights: Sequence[float], least: Sequence[int], instance: Instance) -> list[int]:
    """All layers in proportion to the weights, rounded by largest remainder, with least numbers."""
    total, parts = instance.num_layers, range(len(weights))
    ideal = [total * weight / sum(weights) for weight in weights]
    layers = [max(int(ideal[k]), least[k]) for k in parts]
    while sum(layers) < total:
        layers[max(parts, key=lambda k: (ideal[k] - layers[k], -k))] += 1
    while sum(layers) > total:
        spare = [k for k in parts if layers[k] > least[k]]
        layers[max(spare, key=lambda k: (layers[k] - ideal[k], k))] -= 1
    return layers


BASELINE = BaselineRule(
    name="holmes",
    sentence="Stages stay inside an island; layers in proportion to the speed of its pools; one "
    "set of degrees.",
    source="Holmes, arXiv 2312.03549; github.com/CodexDive/Holmes",
    order=3,
    propose=propose,
    applies=several_pools,
)
