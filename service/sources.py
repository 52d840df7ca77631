"""Where the names in a question may lead."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where names may lead, and how an unknown model type is read.

    files: a name may be a path. as_family: the family to read an unknown model type as. profiles:
    folder of chips and links that come before the bundled ones. software: the training stack, a
    bundled name or a path.
    """

    files: bool = True
    as_family: str | None = None
    profiles: Path | None = None
    software: str = "auto"


BUNDLED_ONLY = Sources(files=False)
