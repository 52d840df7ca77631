"""Whether the server answers."""

from fastapi import APIRouter
from pydantic import BaseModel

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The server answers."""

    status: str = "ok"


@router.get("/healthz")
async def healthz() -> Health:
    """Answers while plans are being made, too."""
    return Health()
