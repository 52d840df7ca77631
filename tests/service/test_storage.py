"""Stored plans."""

from pathlib import Path

from service.storage import PlanStore
from tests.service.fixtures import plan_document

OTHER = "sha256:" + "b" * 64


def test_plans_outlive_the_server(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'plans.sqlite3'}"
    store = PlanStore.open(url)
    store.keep(plan_document())
    store.close()
    again = PlanStore.open(url)

    assert again.get(plan_document()["id"]) == plan_document()
    assert again.get(OTHER) is None
    again.close()


def test_the_newest_come_first_and_only_so_many() -> None:
    store = PlanStore.open("sqlite://")
    store.keep(plan_document())
    store.keep(plan_document(id=OTHER))

    assert [plan["id"] for plan in store.newest(1)] == [max(store.newest(2), key=created)["id"]]
    assert "document" not in store.newest(1)[0]
    store.close()


def test_an_id_keeps_its_first_document() -> None:
    store = PlanStore.open("sqlite://")
    first, again = (plan_document(search={"elapsed_s": t, "evaluated": 1}) for t in (1.0, 2.0))

    assert [store.keep(first), store.keep(again)] == [first, first]
    assert store.get(first["id"]) == first
    store.close()


def created(summary: dict[str, str]) -> str:
    return summary["created_at"]
