"""What is bundled: chips and clusters."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from service.catalogue import chip_documents, cluster_documents

router = APIRouter(prefix="/v1", tags=["catalogue"])


class Catalogue(BaseModel):
    """Bundled documents."""

    items: list[dict[str, Any]]


@router.get("/chips")
def list_chips() -> Catalogue:
    """The bundled chips with all their numbers."""
    return Catalogue(items=chip_documents())


@router.get("/clusters")
def list_clusters() -> Catalogue:
    """The bundled clusters."""
    return Catalogue(items=cluster_documents())
