"""Where the names in a question may lead."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where names may lead, and how an unknown model type is read.

    files: a name may be a path. as_family: the family to read an unknown model type as.
    """

    files: bool = True
    as_family: str | None = None


BUNDLED_ONLY = Sources(files=False)
