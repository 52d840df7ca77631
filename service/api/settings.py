"""What a server is told when it is made. Nothing here is read from the environment."""

from dataclasses import dataclass

DEFAULT_DATABASE = "sqlite:///haplan.sqlite3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one server.

    database: SQLAlchemy URL of the stored plans.
    processes: planning processes; 0 plans in a thread of the server (for tests).
    max_waiting: requests that may wait for a free process.
    max_wait_s: seconds that a request may wait for one.
    grace_s: seconds beyond its time limit after which a plan is stopped.
    estimate_limit_s: seconds after which an estimate is stopped.
    max_body_bytes: largest accepted request body.
    """

    database: str = DEFAULT_DATABASE
    processes: int = 1
    max_waiting: int = 16
    max_wait_s: float = 15.0
    grace_s: float = 20.0
    estimate_limit_s: float = 30.0
    max_body_bytes: int = 4 * 2**20
