"""Problems as keys of caches."""

from costmodel.problem import Problem


class SameProblem:
    """A problem with the same model, cluster and constants, and an equal job.

    The parts are told apart by identity: a model has no hash, and comparing it is slow. The cache
    that holds this keeps them alive.
    """

    __slots__ = ("key", "problem")

    def __init__(self, problem: Problem) -> None:
        """Wrap a problem; several values of it may stand for the same one."""
        self.problem = problem
        parts = problem.model, problem.cluster, problem.efficiency
        self.key = (*(id(part) for part in parts), problem.job)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameProblem) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)
