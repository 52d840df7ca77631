"""Options for profiles of a user's own."""

from pathlib import Path
from typing import Annotated

import typer

Profiles = Annotated[
    Path | None,
    typer.Option(
        "--profiles",
        metavar="FOLDER",
        help="Chips and links of your own, as `haplan calibrate` writes them.",
    ),
]
Software = Annotated[
    str,
    typer.Option(
        "--software",
        metavar="auto|NAME|FILE",
        help="The training stack: a bundled profile or a file that `haplan calibrate` wrote.",
    ),
]
