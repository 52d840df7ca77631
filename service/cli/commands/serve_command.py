"""`haplan serve`: the HTTP service."""

from typing import Annotated

import typer

from service.outcomes import MissingExtraError

EXAMPLES = """
Examples:

    haplan serve

    haplan serve --port 9000 --database sqlite:///plans.sqlite3 --processes 2
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", epilog=EXAMPLES)(serve_command)


def serve_command(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8765,
    database: Annotated[
        str, typer.Option(metavar="URL", help="SQLAlchemy URL of the stored plans.")
    ] = "sqlite:///haplan.sqlite3",
    processes: Annotated[int, typer.Option(min=1, help="Planning processes.")] = 1,
) -> None:
    """Serve the planner over HTTP. The API is described at /openapi.json."""
    try:
        import uvicorn

        from service.api.app import create_app
        from service.api.settings import Settings
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"{error.name} is not installed: pip install 'haplan[service]'"
        ) from error
    app = create_app(Settings(database=database, processes=processes))
    uvicorn.run(app, host=host, port=port, log_level="info")
