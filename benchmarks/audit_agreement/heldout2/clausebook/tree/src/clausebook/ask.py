"""The only module that talks to a model."""

import asyncio
import logging
from typing import Any

import httpx
from pydantic import ValidationError

from .contract import Clause
from .points import Points, Summary, checked
from .settings import Settings

log = logging.getLogger(__name__)

INSTRUCTION = """You list what a clause of a contract means for the party that signs it. At most eight points. Each point
quotes, word for word, the part of the clause that it rests on. You give no advice."""


def request(clause: Clause, settings: Settings) -> dict[str, Any]:
    return {
        "model": settings.model,
        "temperature": 0,
        "max_tokens": 1500,
        "messages": [
            {"role": "system", "content": INSTRUCTION},
            {"role": "user", "content": f"Clause {clause.number} ({clause.title}):\n{clause.text}"},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "points", "schema": Points.model_json_schema(), "strict": True},
        },
    }


async def once(client: httpx.AsyncClient, clause: Clause, settings: Settings) -> Points:
    response = await client.post(str(settings.endpoint), json=request(clause, settings))
    response.raise_for_status()
    return Points.model_validate_json(response.json()["choices"][0]["message"]["content"])


async def summarise(client: httpx.AsyncClient, clause: Clause, settings: Settings) -> Summary:
    """A summary, or one that names its problem. Never raises for what a model or a network does."""
    problem = ""
    for attempt in range(settings.attempts):
        try:
            return checked(clause, await once(client, clause, settings))
        except httpx.HTTPStatusError as error:
            problem = f"HTTP {error.response.status_code}"
            if error.response.status_code in (400, 401, 403, 404):
                break
        except httpx.HTTPError as error:
            problem = f"{type(error).__name__}: {error}"
        except (ValidationError, KeyError, IndexError, TypeError, ValueError) as error:
            problem = f"the answer does not fit ({type(error).__name__})"
        log.info("clause %s, attempt %d: %s", clause.number, attempt + 1, problem)
        if attempt + 1 < settings.attempts:
            await asyncio.sleep(2**attempt)
    return Summary(clause, problem=problem)


async def summarise_all(clauses: list[Clause], settings: Settings, transport: httpx.AsyncBaseTransport | None = None
                        ) -> list[Summary]:
    token = settings.token.get_secret_value()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    gate = asyncio.Semaphore(settings.at_once)
    async with httpx.AsyncClient(timeout=settings.timeout_s, headers=headers, transport=transport) as client:

        async def gated(clause: Clause) -> Summary:
            async with gate:
                return await summarise(client, clause, settings)

        return await asyncio.gather(*(gated(clause) for clause in clauses))
