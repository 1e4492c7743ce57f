"""The newspaper's archive."""

import httpx
from pydantic import TypeAdapter, ValidationError

from .desk import Hit
from .settings import settings

HITS = TypeAdapter(list[Hit])


class ArchiveError(Exception):
    pass


async def look_up(keywords: list[str], limit: int = 6) -> list[Hit]:
    """At most three tries; a search that fails is told, never taken for an empty one."""
    problem = "unknown"
    headers = {"Authorization": f"Bearer {settings().token.get_secret_value()}"}
    async with httpx.AsyncClient(base_url=str(settings().archive), headers=headers,
                                 timeout=settings().seconds) as client:
        for _ in range(3):
            try:
                reply = await client.get("search", params={"q": " ".join(keywords), "limit": limit})
                reply.raise_for_status()
                return HITS.validate_json(reply.content)
            except httpx.TransportError as error:
                problem = f"{type(error).__name__}: {error}"
            except (httpx.HTTPStatusError, ValidationError) as error:
                raise ArchiveError(str(error)) from error
    raise ArchiveError(problem)
