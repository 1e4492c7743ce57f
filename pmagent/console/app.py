"""The application: its routes, and what becomes of errors (docs/design.md §18.1)."""

from __future__ import annotations

from importlib import import_module
from typing import Final

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from pmagent.actors.core.integrity import describe_failure
from pmagent.console.pages.context import PageContext, context_of
from pmagent.console.pages.rendering import STATIC
from pmagent.edges import EDGES
from pmagent.events.errors import NotFound, PmagentError
from pmagent.exitcodes import Exit
from pmagent.service.client import DaemonUnreachable, NotFromHere

VIEWS: Final = tuple(view for edge in EDGES for view in edge.views)
"""The modules of pages, each with its ``routes``."""

_STATUS: Final = {
    Exit.NO: 409, Exit.USAGE: 400, Exit.CORRUPT: 500, Exit.UNREACHABLE: 503, Exit.TIMED_OUT: 504, Exit.SECURITY: 403,
}  # fmt: skip

_log = structlog.get_logger("pmagent")


def application(context: PageContext) -> Starlette:
    """The pages over ``context``, without the guard: see ``serving``."""
    routes: list[BaseRoute] = [Mount("/static", StaticFiles(directory=STATIC), name="static")]
    for name in VIEWS:
        routes += import_module(name).routes
    handlers = {HTTPException: _refused, PmagentError: _failed, Exception: _broken}
    app = Starlette(routes=routes, exception_handlers=handlers)  # type: ignore[arg-type]
    app.state.context = context
    return app


class Positioned:
    """Notes the log's end before a page is made, so that whoever follows from there misses nothing."""

    def __init__(self, app: ASGIApp, context: PageContext) -> None:
        self._app = app
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "http" and not scope["path"].startswith("/static/"):
            state = scope.setdefault("state", {})
            try:
                state["position"] = await self._context.noted()
            except (PmagentError, OSError):  # the pages that read it say so
                state["position"] = 0
        await self._app(scope, receive, send)


async def _refused(request: Request, error: HTTPException) -> Response:
    what = "There is no such page." if error.status_code == 404 else str(error.detail)
    return await _error(request, error.status_code, what, "")


async def _failed(request: Request, error: PmagentError) -> Response:
    """An error of ours says what, where and what next; that is what people read here as well."""
    status = 404 if isinstance(error, NotFound) else _STATUS.get(Exit(error.exit_code), 500)
    if isinstance(error, DaemonUnreachable):
        status = 501 if isinstance(error, NotFromHere) else 503
    return await _error(request, status, error.message, error.hint)


async def _broken(request: Request, error: Exception) -> Response:
    """A bug of ours: told at the daemon's screen; its text may hold anything, and is shown to nobody."""
    kind, place = describe_failure(error)
    _log.error("a bug in the console", kind=kind, place=place, path=request.url.path)
    return await _error(request, 500, f"A bug in pmagent: {kind} in {place}.", "Report it; the console goes on.")


async def _error(request: Request, status: int, what: str, hint: str) -> Response:
    return await context_of(request).page(
        request, "error.html", title=_TITLES.get(status, "That went wrong"), section="", status=status, what=what,
        hint=hint,
    )


_TITLES: Final = {
    400: "Not understood", 403: "Not allowed", 404: "Not found", 405: "Not possible here", 409: "Not as it was",
    501: "Not possible on this machine", 503: "The daemon is not reachable", 504: "No answer in time",
}  # fmt: skip
