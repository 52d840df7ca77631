"""All pools but the slowest."""

from costmodel.layout.values import Layout
from planner.baselines.baseline import BaselineRule, Setting, best_of, several_pools
from planner.chains import by_room, chain_candidate
from planner.degrees import slowest_pool
from planner.instance import Draft, Instance
from planner.mesh_search import Effort, search_meshes
from planner.routes import routes

BALANCED = 60
KEPT = 3
EFFORT = Effort(scored=12, improved=1)


def propose(setting: Setting) -> Layout | None:
    """Chains or one set of degrees over the pools that are left, in the order of their room."""
    instance, watch = setting.instance, setting.watch
    slowest = slowest_pool(instance)
    left = tuple(k for k in by_room(instance) if k != slowest)
    meshes = search_meshes(instance, [left, left[::-1]], watch, even=False, effort=EFFORT)
    return best_of(instance, [*_chains(setting, instance, left), *(d for d, _ in meshes[:KEPT])])


def _chains(setting: Setting, instance: Instance, left: tuple[int, ...]) -> list[Draft]:
    sketches = routes(instance, [left, left[::-1]], setting.watch)[:BALANCED]
    found = (chain_candidate(instance, r.parts, r.count) for r in sketches)
    fitting = sorted((c for c in found if c is not None), key=lambda c: c.quick_s)
    return [candidate.draft for candidate in fitting[:KEPT]]


BASELINE = BaselineRule(
    name="without slowest pool",
    sentence="All pools but the slowest, the best chain or one set of degrees.",
    source="what is done with old chips that hold up the others",
    order=2,
    propose=propose,
    applies=several_pools,
    always=True,
)
