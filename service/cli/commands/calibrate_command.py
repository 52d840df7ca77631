"""`haplan calibrate`: profiles from one's own measurements."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli import options
from service.cli.output import Format, console, emit, progress, save
from service.outcomes import MissingExtraError

if TYPE_CHECKING:
    from costmodel.calibration.calibrate import Subject

EXAMPLES = """
Examples:

    haplan calibrate all_reduce.txt gemm.csv --chip nvidia-h100-sxm-80g

    haplan calibrate two_nodes/ --scale-out infiniband-ndr --nics 8

    haplan calibrate runs.jsonl --software our-stack --into profiles

    haplan calibrate --sweep --device cpu --quick --into this-machine
"""


Files = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="FILES...",
        help="nccl-tests output, CSV of products, attention, memory or collectives, "
        "measured cases (.jsonl), or folders of them.",
    ),
]
Chip = Annotated[
    str | None, typer.Option("--chip", metavar="NAME", help="The bundled chip that was measured.")
]
ScaleUp = Annotated[
    str | None,
    typer.Option(
        "--scale-up", metavar="NAME", help="The bundled link inside a node; else the chip's usual."
    ),
]
ScaleOut = Annotated[
    str | None,
    typer.Option("--scale-out", metavar="NAME", help="The bundled network between nodes."),
]
Nics = Annotated[
    int | None, typer.Option("--nics", metavar="N", min=1, help="NICs of a node on that network.")
]
ScaleUpDomain = Annotated[
    int | None,
    typer.Option(
        "--scale-up-domain",
        metavar="N",
        min=2,
        help="Chips on the scale-up link, where more than a node.",
    ),
]
Software = Annotated[
    str | None,
    typer.Option("--software", metavar="NAME", help="Name of the training stack's profile."),
]
Sweep = Annotated[
    bool, typer.Option("--sweep", help="Measure this machine with torch first, about a minute.")
]
Device = Annotated[
    str,
    typer.Option("--device", metavar="auto|cpu|cuda", help="What --sweep measures."),
]
Quick = Annotated[bool, typer.Option("--quick", help="A sweep of about ten seconds.")]
Into = Annotated[
    Path,
    typer.Option("--into", metavar="FOLDER", help="Where chips/, links/ and software/ go."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("calibrate", epilog=EXAMPLES)(calibrate_command)


def calibrate_command(
    files: Files = None,
    chip: Chip = None,
    scale_up: ScaleUp = None,
    scale_out: ScaleOut = None,
    nics: Nics = None,
    scale_up_domain: ScaleUpDomain = None,
    software: Software = None,
    sweep: Sweep = False,
    device: Device = "auto",
    quick: Quick = False,
    into: Into = Path("profiles"),
    output_format: options.OutputFormat = Format.TEXT,
    output: options.OutputPath = None,
) -> None:
    """Write chip, link and software profiles from your own measurements.

    Says which files were recognised, every fitted number with its uncertainty, the errors that are
    left, and what stays as bundled. `plan` and `estimate` take the profiles with `--profiles` and
    `--software`.
    """
    from costmodel.calibration.calibrate import Subject
    from service.calibration import calibrate_files, check_sweep_options
    from service.cli.text.calibrate_text import show_calibration

    subject = Subject(
        chip=chip,
        scale_up=scale_up,
        scale_out=scale_out,
        nics=nics,
        scale_up_domain=scale_up_domain,
        software=software,
    )
    tables: list[Path] = []
    check_sweep_options(sweep=sweep, device=device, quick=quick)
    if sweep:
        tables, subject = measure(subject, device=device, quick=quick, folder=into)
    with progress("fitting"):
        written = calibrate_files([*(files or []), *tables], subject, folder=into)
    for place, text in written.files.items():
        save(text, into / place, field="--into")
    emit(written.document, show_calibration, output_format=output_format, path=output)


def measure(
    subject: "Subject", *, device: str, quick: bool, folder: Path
) -> tuple[list[Path], "Subject"]:
    """The tables of a sweep, whose progress goes to stderr, and what they are of."""
    from service.calibration import swept

    watched = console(stderr=True)
    try:
        return swept(
            subject,
            device=device,
            quick=quick,
            folder=folder,
            progress=lambda line: watched.print(f"measuring {line}"),
        )
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{error.name} is not installed: pip install 'haplan[runner]'"
        ) from error
