"""The page Settings: what is permitted and what was refused, the operators, and the settings that hold; and the
workspaces of this user on this machine, with the other logs of a database. Nothing is changed here: each part names the
command that does."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from pmagent.actors.oa.policy import ALLOWED, FORBIDDEN
from pmagent.console.address import read
from pmagent.console.auth import operators
from pmagent.console.pages.context import context_of
from pmagent.console.pages.reading.searching import until
from pmagent.console.pages.views.agents import standing
from pmagent.console.paths import ConsolePaths
from pmagent.events.errors import CorruptLog, NotFound, PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.evidence import logs_listed
from pmagent.events.store import ListedLog
from pmagent.log.listed import Said, said_by
from pmagent.log.query import Query, needles
from pmagent.log.ranges import Range, last_of
from pmagent.log.summaries import payload
from pmagent.service.client import call_daemon, new_request
from pmagent.workspace.layout import Layout
from pmagent.workspace.user_registry import Registry

REFUSED: Final = ("oa.permit_refused", "effect.refused", "pla.proposal_refused", "pla.decision_refused", "run.refused")
"""Events by which something was refused, each with reasons and what would help."""
REFUSED_MAX: Final = 15
LOOK_SECONDS: Final = 1.0
WORKSPACES_MAX: Final = 64
ASK_SECONDS: Final = 2.0
"""So long another workspace's daemon is waited for."""

_REFUSED_NEEDLES: Final = needles(Query(types=REFUSED))


class Refusal(msgspec.Struct, frozen=True):
    """Something that was refused: where, when, why, and what would change that."""

    position: int
    time: str
    type: str
    reasons: list[str]
    mends: list[str]


class Neighbour(msgspec.Struct, frozen=True):
    """A workspace of this user. ``url``: where its console is served ("": it is not); ``status``: what its daemon says,
    None where none answers."""

    path: str
    name: str
    url: str
    position: int
    here: bool
    status: dict[str, Any] | None


async def show(request: Request) -> Response:
    """``GET /settings``."""
    context = context_of(request)
    found, trouble = await context.read(_operators, context.paths.operators)
    return await context.page(
        request, "settings.html", title="Settings", section="settings", command=("pmagent", "doctor"),
        live=("oa.permit", "oa.mode", "kernel.mode", "run.ended"),
        permits=await standing(context, "oa.permits", "permits"),
        settings=await standing(context, "settings", "settings"),
        operators=found, operators_trouble=trouble, refused=await context.read(_refused, context.layout),
        allowed=ALLOWED, forbidden=FORBIDDEN,
    )  # fmt: skip


def _operators(file: Path) -> tuple[list[operators.Operator], str]:
    """The operators by name, or why they are not known. Blocking."""
    try:
        return sorted(operators.read(file).values(), key=lambda one: one.name), ""
    except (PmagentError, OSError) as error:
        return [], str(error)


def _refused(layout: Layout) -> list[Refusal]:
    """The newest refusals, newest first. Blocking, for a bounded time."""

    def pick(run: Sequence[StoredEvent]) -> Sequence[Refusal]:
        return [_refusal(event) for event in run if event.type in REFUSED]

    try:
        with closing(layout.store.reader()) as storage:
            span = Range(1, storage.tail().position, "")
            found = last_of(storage, span, pick, REFUSED_MAX, until(LOOK_SECONDS), _REFUSED_NEEDLES)
    except (NotFound, CorruptLog):
        return []
    return found.events[::-1]


def _refusal(event: StoredEvent) -> Refusal:
    data = payload(event)
    texts = [
        [str(text)[:300] for text in value[:5]] if isinstance(value := data.get(name), list) else []
        for name in ("reasons", "mend")
    ]
    return Refusal(event.position, event.time, event.type, *texts)


async def workspaces(request: Request) -> Response:
    """``GET /workspaces``: those whose logs this user's commands began or took over on this machine, and the logs of
    the database in which this one lies."""
    context = context_of(request)
    listed: list[tuple[ListedLog, Said | None]] | None = []
    if context.layout.evidence.database:
        try:
            listed = [(one, said_by(one)) for one in await context.read(logs_listed, context.workspace)]
        except PmagentError:  # the page says so; the workspaces are of this machine
            listed = None
    found = await context.read(_known, context.workspace)
    statuses: dict[str, dict[str, Any] | None] = dict.fromkeys(one.path for one in found)

    async def ask(path: str) -> None:
        try:
            asked = {"request": new_request("status")}
            statuses[path] = (await call_daemon(Layout(Path(path)), "status", asked, ASK_SECONDS)).document
        except (PmagentError, OSError):  # it has none, or none that answers: the page says so
            statuses[path] = None

    async with anyio.create_task_group() as tasks:
        for one in found:
            tasks.start_soon(ask, one.path)
    return await context.page(
        request, "workspaces.html", title="Workspaces", section="", command=("pmagent", "status"),
        found=[msgspec.structs.replace(one, status=statuses[one.path]) for one in found], listed=listed,
    )  # fmt: skip


def _known(here: Path) -> list[Neighbour]:
    """The workspaces that this user's registry names and that are there, this one first. Blocking."""
    made = []
    for known in Registry().known_at():
        path = Path(known.workspace)
        if path.is_dir() and os.stat(path).st_uid == os.geteuid():
            served = read(ConsolePaths(Layout(path)).address)
            url = served.url if served is not None and served.port else ""
            same = os.path.realpath(path) == os.path.realpath(here)
            made.append(Neighbour(str(path), path.name or str(path), url, known.position, same, None))
    return sorted(made, key=lambda one: (not one.here, one.path))[:WORKSPACES_MAX]


routes: list[BaseRoute] = [
    Route("/settings", show, methods=["GET"]), Route("/workspaces", workspaces, methods=["GET"]),
]  # fmt: skip
