"""Stored plans, in any database that SQLAlchemy speaks; SQLite by default."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self, cast

from sqlalchemy import (
    Column,
    Float,
    MetaData,
    Row,
    String,
    Table,
    Text,
    create_engine,
    event,
    select,
)
from sqlalchemy import insert as insert_into
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import IntegrityError
from sqlalchemy.pool import StaticPool

METADATA = MetaData()
PLANS = Table(
    "plans",
    METADATA,
    Column("id", String(80), primary_key=True),
    Column("created_at", String(32), nullable=False, index=True),
    Column("status", String(16), nullable=False),
    Column("model", Text, nullable=False),
    Column("cluster", Text, nullable=False),
    Column("step_time_s", Float, nullable=True),
    Column("document", Text, nullable=False),
)
SUMMARY = [column for column in PLANS.columns if column.name != "document"]

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlanStore:
    """Plans by id."""

    engine: Engine

    @classmethod
    def open(cls, url: str) -> Self:
        """Open the database and make its table if it has none."""
        engine = make_engine(url)
        METADATA.create_all(engine)
        return cls(engine)

    def keep(self, plan: Document) -> Document:
        """Store a plan, unless it is stored; the answer is what is stored under its id.

        The same plan made again differs in how long its search took: the first one stays, so that
        an id always stands for the same bytes.
        """
        with suppress(IntegrityError), self.engine.begin() as connection:
            connection.execute(insert_into(PLANS).values(**row_of(plan)))
        return self.get(plan["id"]) or plan

    def get(self, plan_id: str) -> Document | None:
        """The stored plan, if there is one."""
        query = PLANS.select().where(PLANS.c.id == plan_id)
        with self.engine.connect() as connection:
            found = connection.execute(query).one_or_none()
        return None if found is None else cast("Document", json.loads(found.document))

    def newest(self, limit: int) -> list[Document]:
        """Summaries of the latest plans."""
        query = select(*SUMMARY).order_by(PLANS.c.created_at.desc(), PLANS.c.id).limit(limit)
        with self.engine.connect() as connection:
            return [summary_of(row) for row in connection.execute(query)]

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()


def make_engine(url: str) -> Engine:
    """An engine; SQLite is told to wait for its lock, and in memory to be one database."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True)
    if parsed.database in (None, "", ":memory:"):
        return create_engine(url, poolclass=StaticPool, connect_args={"check_same_thread": False})
    engine = create_engine(url, connect_args={"timeout": 10})
    event.listen(engine, "connect", _use_write_ahead_log)
    return engine


def _use_write_ahead_log(connection: Any, _record: object) -> None:
    connection.execute("PRAGMA journal_mode=WAL")


def row_of(plan: Document) -> Document:
    """What is stored of a plan: the columns to list by, and the document whole."""
    prediction = cast("Mapping[str, Any]", plan.get("prediction") or {})
    return {
        "id": plan["id"],
        "created_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "status": plan["status"],
        "model": plan["model"]["name"],
        "cluster": plan["cluster"]["name"],
        "step_time_s": prediction.get("step_time_s"),
        "document": json.dumps(plan, allow_nan=False),
    }


def summary_of(row: Row[Any]) -> Document:
    """A row without its document."""
    return {column.name: getattr(row, column.name) for column in SUMMARY}
