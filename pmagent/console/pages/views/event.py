"""The page of one event: its envelope and data, what caused it and what came of it, its line and what proves it."""

from __future__ import annotations

import re
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pmagent.console.pages import downloads
from pmagent.console.pages.addresses import number
from pmagent.console.pages.context import context_of
from pmagent.console.pages.reading.event_reading import (
    LIMIT,
    LIMIT_MAX,
    blob_at,
    blob_content,
    blob_of,
    line_at,
    nested,
    pretty,
    seen,
)
from pmagent.console.pages.reading.outputs import decoded, marked
from pmagent.events.event import StoredEvent
from pmagent.log.summaries import payload, sign, summary

SHOWN_CHARS: Final = 32_768
"""So much of the data, and of the line, stands in the page; all of it can be had as a file."""
FRESH_EVENTS: Final = 5_000
"""An event's consequences mostly come soon: the page of an older one is not refreshed by itself."""
ENVELOPE: Final = ("type", "kind", "actor", "time", "id", "correlation", "causation", "batch")

_POSITION: Final = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)

_JOB: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_PAGES: Final = (
    ("proposal_id", re.compile(r"prop-[0-9a-f]{32}", re.ASCII), (), "/approvals", "Proposal"),
    ("session_id", re.compile(r"pla-[0-9a-f]{32}", re.ASCII), (), "/sessions", "Session"),
    ("run_id", _JOB, (), "/runs", "Run"),
    ("audit_id", _JOB, (), "/audits", "Audit"),
    ("correlation", _JOB, ("run.", "plan.", "task.", "tasks."), "/runs", "Run"),
    ("correlation", _JOB, ("audit.",), "/audits", "Audit"),
)
"""Names of things that have a page of their own: a field of the data, or the correlation of events of some kinds."""


async def show(request: Request) -> Response:
    """``GET /log/{position}``; ``?limit=`` so many consequences at most. Raises NotFound, CorruptLog."""
    context, position = context_of(request), _position(request)
    limit = number(request, "limit", LIMIT, least=1, most=LIMIT_MAX)
    found = await context.read(seen, context.layout.store, position, limit)
    event = found.event
    above, left_out, root = nested(found.tree) if found.tree is not None else ((), 0, None)
    content, missing, named = b"", "", None
    if event is not None:
        content, named = bytes(event.data), blob_of(event)
        if named is not None:
            content, missing = await context.read(blob_content, context.layout.store, named)
    data = decoded(await context.read(pretty, content))
    line = decoded(found.proof.line)
    return await context.page(
        request, "event.html", title=f"Event {position}", section="log",
        live=_kinds(event) if found.tree is not None and found.end - position <= FRESH_EVENTS else (),
        command=["pmagent", "log", "show", str(position)], why=["pmagent", "log", "why", str(position)],
        seen=found, event=event, envelope=ENVELOPE, summary=summary, sign=sign, above=above, left_out=left_out,
        root=root, limit=limit, limit_more=min(LIMIT_MAX, 5 * limit), line=marked(line[:SHOWN_CHARS]),
        line_cut=len(line) - SHOWN_CHARS, data=marked(data[:SHOWN_CHARS]), data_cut=len(data) - SHOWN_CHARS,
        blob=named, missing=missing, belongs=pages_of(event) if event is not None else (),
    )


def pages_of(event: StoredEvent) -> list[tuple[str, str]]:
    """The pages of what an event tells of: address and word."""
    named = {**payload(event), "correlation": event.correlation}
    found: dict[tuple[str, str], None] = {}
    for name, shape, kinds, address, word in _PAGES:
        given = named.get(name)
        if isinstance(given, str) and shape.fullmatch(given) and (not kinds or event.type.startswith(kinds)):
            found[f"{address}/{given}", f"{word} {given[:13]}"] = None
    return list(found)


def _kinds(event: StoredEvent | None) -> tuple[str, ...]:
    """The area of the event: what it leads to next is mostly of that."""
    return (event.type.split(".")[0] + ".",) if event is not None and event.correlation else ()


def _position(request: Request) -> int:
    named = str(request.path_params["position"])
    if not _POSITION.fullmatch(named):
        raise HTTPException(404)
    return int(named)


async def raw(request: Request) -> Response:
    """``GET /log/{position}/raw``: the stored line, newline included, byte for byte, also where it is corrupt. Raises
    NotFound, CorruptLog."""
    context, position = context_of(request), _position(request)
    line = await context.read(line_at, context.layout.store, position)
    return downloads.whole(f"event-{position}.jsonl", line)


async def blob(request: Request) -> Response:
    """``GET /log/{position}/blob``: the blob in which the event's payload lies. Raises NotFound, CorruptLog."""
    context, position = context_of(request), _position(request)
    named = await context.read(blob_at, context.layout.store, position)
    return await downloads.blob(context, f"event-{position}.json", named)


routes: list[BaseRoute] = [
    Route("/log/{position}", show), Route("/log/{position}/raw", raw), Route("/log/{position}/blob", blob),
]  # fmt: skip
