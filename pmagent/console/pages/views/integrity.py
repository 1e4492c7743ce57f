"""The page Integrity: what the log's files are like, and whether they and the documents are what they must be."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any, Final

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from pmagent.console.pages.context import PageContext, context_of, visitor_of
from pmagent.console.pages.reading.checking import KINDS, Check, Checks, Kind
from pmagent.console.pages.reading.log_state import Held, Snapshots, held, passed_over
from pmagent.events.errors import PmagentError
from pmagent.events.event import Tail
from pmagent.events.store import Standing
from pmagent.exitcodes import MEANINGS, Exit

_POSITION: Final = re.compile(r"[1-9][0-9]{0,15}", re.ASCII)
_SUM: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
COMMANDS: Final[dict[Kind, tuple[str, ...]]] = {
    "log": ("pmagent", "log", "verify", "--decode"), "documents": ("pmagent", "rebuild", "--check"),
    "replay": ("pmagent", "replay", "--what-if"),
}  # fmt: skip


@cache
def checks_of(context: PageContext) -> Checks:
    """The checks of a console, one for all who ask."""
    return Checks(context.workspace, context.paths.folder, lambda check: anyio.run(_recorded, context, check))


@cache
def _snapshots_of(context: PageContext) -> Snapshots:
    return Snapshots(context.layout)


async def _recorded(context: PageContext, check: Check) -> None:
    """Have the log say who had what checked, and what came of it. Raises DaemonUnreachable, RemoteError."""
    tail: dict[str, Any] = check.result.get("tail", {})
    await context.ask(
        "console.checked", operator_id=check.operator, what=check.kind, exit_code=check.exit_code,
        position=tail.get("position", 0), sum=tail.get("sum", ""),
    )  # fmt: skip


async def show(request: Request) -> Response:
    """``GET /integrity``."""
    return await _page(request)


async def verify(request: Request) -> Response:
    """``POST /integrity/verify``: begin to check the log."""
    return await _begin(request, "log")


async def documents(request: Request) -> Response:
    """``POST /integrity/documents``: begin to compare the documents with the log."""
    return await _begin(request, "documents")


async def again(request: Request) -> Response:
    """``POST /integrity/replay``: begin to make each decision of the log again."""
    return await _begin(request, "replay")


async def _begin(request: Request, kind: Kind) -> Response:
    context = context_of(request)
    checks = checks_of(context)
    await context.read(checks.begin, kind, visitor_of(request).operator)
    return RedirectResponse(f"/integrity#{kind}", status_code=303)


async def _page(request: Request) -> Response:
    context = context_of(request)
    checks = checks_of(context)
    log, docs, replayed = [await context.read(checks.latest, kind) for kind in KINDS]
    trouble, seen, snapshot = "", None, None
    outdated = dict.fromkeys(KINDS, "")
    try:
        seen = await context.read(context.layout.store.stat)
        snapshot = await context.read(_snapshots_of(context).look)
        outdated["log"] = await context.read(_passed_over, context, log, "tail")
        outdated["documents"] = await context.read(_passed_over, context, docs, "end")
        outdated["replay"] = await context.read(_passed_over, context, replayed, "end")
    except OSError as error:
        trouble = f"{error.filename or 'a file'} cannot be read: {error.strerror or os.strerror(error.errno or 0)}"
    compared, wrong = await _compared(request)
    return await context.page(
        request, "integrity.html", title="Integrity", section="integrity", command=COMMANDS["log"],
        live=("console.checked",),
        seen=seen, snapshot=snapshot, unread=trouble, log=log, documents=docs, replayed=replayed, commands=COMMANDS,
        running=checks.running, ends=_ends(log, docs, replayed), grown=_grown(log, seen),
        passed_over=outdated, compared=compared, wrong=wrong, given=request.query_params,
        status=400 if wrong else 200,
    )


async def _compared(request: Request) -> tuple[Held | None, dict[str, str]]:
    """The sum that the address holds against the log, and what of it is not understood: field -> why."""
    at, noted = (request.query_params.get(name, "").strip() for name in ("at", "sum"))
    wrong: dict[str, str] = {}
    if not (at or noted):
        return None, wrong
    if not _POSITION.fullmatch(at):
        wrong["at"] = "a position, e.g. 1284"
    if not _SUM.fullmatch(noted.lower()):
        wrong["sum"] = "64 hexadecimal digits"
    if wrong:
        return None, wrong
    try:
        return await context_of(request).read(held, context_of(request).layout, int(at), noted.lower()), wrong
    except PmagentError as error:
        return None, {"at": error.message}


def _ends(*checks: Check | None) -> dict[str, str]:
    """The exit codes of these checks, in words."""
    return {check.kind: MEANINGS[Exit(check.exit_code)] for check in checks if check is not None}


def _passed_over(context: PageContext, check: Check | None, end: str) -> str:
    """Why what was found says nothing of the log that lies there now; "" where it does, or nothing was found. ``end``:
    under which name the result says how far the log went."""
    if check is None or not check.result:
        return ""
    if end not in check.result:
        return "it does not say of which log it is"
    return passed_over(context.layout, check.result["log_id"], msgspec.convert(check.result[end], Tail))


def _grown(log: Check | None, seen: Standing | None) -> int:
    """How many events have come since the log was checked."""
    tail: dict[str, Any] = log.result.get("tail", {}) if log is not None else {}
    newest = seen.newest if seen is not None else None
    return max(0, newest.position - tail["position"]) if newest is not None and tail else 0


routes: list[BaseRoute] = [
    Route("/integrity", show),
    Route("/integrity/verify", verify, methods=["POST"]),
    Route("/integrity/documents", documents, methods=["POST"]),
    Route("/integrity/replay", again, methods=["POST"]),
]
