"""What has to execute the plan. Each target clips the space before the search."""

from costmodel.errors import UnknownNameError

TARGETS = {"runner": "runner", "any": "runner", "launchable": "runner"}
"""Name -> what it stands for. The runner executes whatever a layout can say."""


def resolve_target(name: str) -> str:
    """The target behind a name. Raises UnknownNameError."""
    if name not in TARGETS:
        raise UnknownNameError(kind="target", name=name, known=TARGETS)
    return TARGETS[name]
