"""The context of every page: the daemon to ask, the log to read, and a way to show the outcome (docs/design.md
§18.1)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from pmagent.console.auth.entrance import Visitor
from pmagent.console.live.pulse import ASK_SECONDS, DEADLINE_SECONDS, FAR_SECONDS, Pulse
from pmagent.console.pages.rendering import command as command_line
from pmagent.console.pages.rendering import environment
from pmagent.console.paths import ConsolePaths
from pmagent.events.errors import NotFound, PmagentError
from pmagent.service.answer import Answer
from pmagent.service.client import REPLY_SECONDS, HolderGone, Unanswered, call_daemon, new_request
from pmagent.workspace.layout import Layout

READERS: Final = 2
"""So many pages read the log at once; others wait their turn. Reading is work for a processor, and there are few."""
reading_for: ContextVar[str] = ContextVar("reading_for", default="")
"""The operator for whom the log is read, as the guard knows them: one read of each operator at a time, so that nobody's
searches, however many, keep another's page of a proposal waiting."""
STANDING_SECONDS: Final = 10.0
"""So long how things stand is waited for: a page that says that nobody tells is better than none."""
FRESH_SECONDS: Final = 1.0
"""So old may an answer about how things stand be, when the log has not grown since."""
CHANNEL: Final = "console"
PROVED: Final = ("pla.propose", "pla.decide", "guests.answer", "guests.policy_edit")
"""Operations that depend on how their operator signed in."""

T = TypeVar("T")


class PageContext:
    """One workspace's."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.layout = Layout(workspace)
        self.paths = ConsolePaths(self.layout)
        self.templates = environment(workspace)
        self.pulse = Pulse(lambda: self.ask("ping", seconds=DEADLINE_SECONDS))
        self._readers = anyio.CapacityLimiter(READERS)
        self._turns: dict[str, anyio.Lock] = {}
        self._log_id = ""
        self._standing: dict[str, tuple[int, float, Answer]] = {}
        self._silent: dict[str, tuple[float, PmagentError]] = {}
        self._hanging: tuple[float, PmagentError] | None = None
        self._asking: dict[str, anyio.Lock] = {}
        self._asked: set[anyio.CancelScope] = set()
        self._ended = False

    def stop_asking(self) -> None:
        """Nothing more is asked, and no answer waited for: the daemon has gone away, and pages have to say so."""
        self._ended = True
        for scope in list(self._asked):
            scope.cancel()

    # --- reading --------------------------------------------------------------------------------------------------

    def position(self) -> int:
        """The log's durable end; 0 without a log. Raises PmagentError, OSError where it cannot be read."""
        try:
            with closing(self.layout.store.reader()) as storage:
                return storage.tail().position
        except NotFound:
            return 0

    async def noted(self) -> int:
        """``position``; a database is asked in a thread."""
        if self.layout.evidence.database:
            return await anyio.to_thread.run_sync(self.position, abandon_on_cancel=True)
        return self.position()

    def log_id(self) -> str:
        """Which log it is, the same as long as this process lives; "" where that cannot be read."""
        if not self._log_id:
            try:
                with closing(self.layout.store.reader()) as storage:
                    self._log_id = storage.log_id()
            except (PmagentError, OSError):
                return ""
        return self._log_id

    async def read(self, reader: Callable[..., T], *arguments: Any) -> T:
        """Call a blocking reader of the log when it is its operator's turn. Raises what it raises."""
        async with self._turns.setdefault(reading_for.get(), anyio.Lock()):
            return await anyio.to_thread.run_sync(reader, *arguments, limiter=self._readers, abandon_on_cancel=False)

    # --- asking ---------------------------------------------------------------------------------------------------

    async def ask(
        self, operation: str, visitor: Visitor | None = None, *, request: str = "", seconds: float = REPLY_SECONDS,
        **arguments: Any,
    ) -> Answer:
        """Perform an operation through the daemon, as a command would; with a ``visitor`` as that operator, over the
        channel ``console``. ``request``: its id, by which asking twice is asking once; without one a new one.

        Raises DaemonUnreachable (Unanswered: it hangs), RemoteError (what the daemon met).
        """
        given = dict(arguments)
        if visitor is not None:
            given |= {"operator": visitor.operator, "channel": CHANNEL}
            given |= {"by_secret": True} if visitor.by_secret and operation in PROVED else {}
        given["request"] = request or new_request(operation)
        with anyio.CancelScope() as scope:
            self._asked.add(scope)
            try:
                if not self._ended:
                    return await call_daemon(self.layout, operation, given, seconds)
            except Unanswered as error:
                self._hanging = time.monotonic(), error
                raise
            finally:
                self._asked.discard(scope)
        if not scope.cancelled_caught:
            raise HolderGone("the daemon has stopped, and was not asked: nothing was done", "pmagent up, and ask again")
        raise HolderGone(
            "the daemon has stopped, and has not answered", "what came of it stands in the log: pmagent log tail"
        )

    async def note(self, operator: str, what: str, by: str, reason: str = "") -> None:
        """Record who signed in or out, or was refused. Raises DaemonUnreachable, RemoteError."""
        await self.ask("console.note", operator=operator, what=what, by=by, reason=reason)

    async def standing(self, operation: str) -> Answer:
        """The answer to an operation that only looks (``status``, ``pla.status``); many pages share one as long as
        nothing has happened since, and all that came while the last was asked for share the next. That there was no
        answer, to this or to anything else, is shared by all who waited for it: no page waits for longer than
        ``STANDING_SECONDS``, and for a daemon that hangs no longer than ``client.SILENT_SECONDS``. Raises
        DaemonUnreachable, RemoteError."""
        came = time.monotonic()
        async with self._asking.setdefault(operation, anyio.Lock()):
            asked, position = time.monotonic(), await self.noted()
            known = self._standing.get(operation)
            if known is not None and (self._hanging is None or self._hanging[0] < known[1]):
                unchanged = known[0] == position and asked - known[1] < FRESH_SECONDS
                if unchanged or known[1] >= came:
                    return known[2]
            for silent in (self._silent.get(operation), self._hanging):
                if silent is not None and (silent[0] >= came or asked - silent[0] < FRESH_SECONDS):
                    raise silent[1].with_traceback(None)
            try:
                answer = await self.ask(operation, seconds=STANDING_SECONDS)
            except PmagentError as error:
                self._silent[operation] = (time.monotonic(), error)
                raise
            self._standing[operation] = (position, asked, answer)
            return answer

    # --- showing --------------------------------------------------------------------------------------------------

    async def page(
        self, request: Request, template: str, *, title: str, section: str, status: int = 200,
        live: Sequence[str] = (), command: Sequence[str] = (), **context: Any,
    ) -> Response:
        """A page: ``template`` with ``context``. ``live``: beginnings of the event types whose arrival makes it stale;
        ``command``: the arguments of the command that shows or does the same."""
        visitor: Visitor | None = getattr(request.state, "visitor", None)
        self.pulse.want()
        standing, trouble = await self._header(visitor)
        silent_since = "" if self.pulse.state.answers else self.pulse.state.since
        text = self.templates.get_template(template).render(
            request=request, visitor=visitor, title=title, section=section, live=",".join(live),
            position=getattr(request.state, "position", 0), command=command_line(command),
            log_id=self.log_id() if visitor is not None else "", standing=standing, trouble=trouble,
            silent_since=silent_since, theme=request.cookies.get("theme", "auto"), here=_here(request),
            density=request.cookies.get("density", "roomy"), csrf=visitor.csrf if visitor is not None else "",
            workspace=str(self.workspace), **context,
        )
        return HTMLResponse(text.encode("utf-8", "backslashreplace"), status_code=status)

    async def _header(self, visitor: Visitor | None) -> tuple[dict[str, Any], str]:
        """How things stand, for the head of the page, and why that is not known."""
        if visitor is None:
            return {}, ""
        try:
            status = await self.standing("status")
            pla = await self.standing("pla.status")
        except PmagentError as error:
            return {}, error.message
        self.pulse.pause = FAR_SECONDS if status.document.get("daemon") == "elsewhere" else ASK_SECONDS
        return {**status.document, "pla": pla.document}, ""


def _here(request: Request) -> str:
    """The page's own address, to come back to; without a one-time token, which is nothing to print."""
    if request.url.path == "/enter":
        return "/"
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def context_of(request: Request) -> PageContext:
    """The context of the application that serves ``request``."""
    context: PageContext = request.app.state.context
    return context


def visitor_of(request: Request) -> Visitor:
    """The signed-in operator; the guard lets nobody else through to the callers."""
    visitor: Visitor = request.state.visitor
    return visitor


def form_of(request: Request) -> dict[str, str]:
    """The fields of a POST, as the guard has read them."""
    form: dict[str, str] = request.state.form
    return form
