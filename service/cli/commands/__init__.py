"""One file per command. What is slow to import is imported when the command runs."""

from collections.abc import Callable

import typer

from service.cli.commands import (
    accuracy_command,
    calibrate_command,
    chips_command,
    clusters_command,
    estimate_command,
    explain_command,
    links_command,
    model_command,
    plan_command,
    regress_command,
    serve_command,
    simulate_command,
    validate_command,
)

REGISTER: tuple[Callable[[typer.Typer], None], ...] = (
    plan_command.register,
    estimate_command.register,
    model_command.register,
    explain_command.register,
    simulate_command.register,
    validate_command.register,
    chips_command.register,
    links_command.register,
    clusters_command.register,
    regress_command.register,
    accuracy_command.register,
    calibrate_command.register,
    serve_command.register,
)
