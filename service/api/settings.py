"""What a server is told when it is made. Nothing here is read from the environment."""

from dataclasses import dataclass

DEFAULT_DATABASE = "sqlite:///haplan.sqlite3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one server.

    database: SQLAlchemy URL of the stored plans.
    processes: planning processes; 0 plans in a thread of the server (for tests).
    max_waiting: requests that may wait for a free process.
    max_body_bytes: largest accepted request body.
    """

    database: str = DEFAULT_DATABASE
    processes: int = 1
    max_waiting: int = 16
    max_body_bytes: int = 4 * 2**20
