"""The guard before every page. A request that passes has one meaning, comes from our pages and from somebody who may.

It looks at the head first, then at the session, then at how often, then at the form; and whatever is answered leaves
with the headers that keep a browser strict. A refused request reaches no page.
"""

from __future__ import annotations

import hashlib
import math
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import quote

import anyio
import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pmagent.console.address import Address
from pmagent.console.auth.entrance import Entrance, Visitor
from pmagent.console.auth.forms import received
from pmagent.console.auth.headers import secured
from pmagent.console.auth.heads import METHODS, Head, Ours, Refusal, judge, read_head
from pmagent.console.auth.limits import Bucket, Seats
from pmagent.console.auth.tokens import same
from pmagent.console.live.packing import Plain, Wire, piece
from pmagent.console.pages.context import PageContext, reading_for
from pmagent.events.errors import PmagentError
from pmagent.service.wire import stops

CSRF: Final = "csrf"
LOOK_SECONDS: Final = 2.0
"""So often a live connection is held to its session: who signed out hears nothing more."""

OPEN: Final = ("/enter", "/sign-in", "/sign-in/passkey", "/sign-out")
"""Pages without a session, beside /static/."""
OPEN_TO_VIEW: Final = ("/sign-in", "/sign-in/passkey", "/sign-out", "/theme", "/control/pause", "/control/disarm")
"""Posts of somebody who may not approve: how that person sees the pages; and an emergency stop, which is everybody's
(docs/design.md §18.2)."""
STOPPING: Final = ("/sign-out", "/control/pause", "/control/disarm", "/control/end")
"""Posts without a rate limit: each ends something, and does no more when it is done twice."""
LOWERING: Final = "/control/mode"
"""As is a mode that is, or may be, a lower one; which it is stands in the form."""
LIVE: Final = ("/live", "/live/log")
PART: Final = b"x-pmagent-part"
"""With this header a page asks for itself anew: no person does."""

_log = structlog.get_logger("pmagent")


class Limits:
    """How often a session may do something, and how many live connections there are at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.gets = Bucket(40.0, 400, clock)
        self.posts = Bucket(2.0, 30, clock)
        self.live = Seats(each=64, overall=512)


def cookie_name(workspace: Path) -> str:
    """The cookie of this workspace's console: browsers tell hosts apart, and not ports."""
    return f"pmagent-{hashlib.sha256(str(workspace).encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


class Guard:
    """ASGI middleware. Puts ``visitor``, ``cookie`` (its value, "" without one), ``form`` (of a POST) and ``trace``
    into the request's state."""

    def __init__(
        self, app: ASGIApp, *, context: PageContext, entrance: Entrance, address: Address, limits: Limits | None = None
    ) -> None:
        self._app = app
        self._context = context
        self._entrance = entrance
        self._ours = Ours(address)
        self._limits = limits or Limits()
        self._cookie = cookie_name(context.workspace)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return  # there are no WebSockets here
        trace = str(uuid.uuid4())
        scope.setdefault("state", {}).update(visitor=None, cookie="", form={}, trace=trace)

        async def secured_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": secured(message.get("headers", ()), trace)}
            await send(message)

        head = read_head(scope["method"], _target(scope), scope["headers"])
        refusal = head if isinstance(head, Refusal) else judge(head, self._ours)
        if refusal is not None:
            await _plain(refusal)(scope, receive, secured_send)
            return
        assert isinstance(head, Head), "or it would be a refusal"
        try:
            answer = await self._admitted(head, scope, receive)
        except PmagentError as error:
            answer = await self._page(scope, Refusal(503, error.message, error.hint))
        except OSError as error:
            _log.error("the console cannot look who is signed in", reason=error.strerror)
            answer = await self._page(scope, Refusal(503, "It cannot be looked up who is signed in.", "pmagent doctor"))
        if answer is not None:
            await answer(scope, receive, secured_send)
            return
        await self._on(scope, receive, secured_send)

    async def _admitted(self, head: Head, scope: Scope, receive: Receive) -> Response | None:
        """The answer to who is not let through; None: on to the page, with everything in the request's state."""
        path: str = scope["path"]
        if path.startswith("/static/"):
            return None if head.method != "POST" else _plain(Refusal(405, "There is nothing to post to."))
        state = scope["state"]
        state["cookie"] = _cookie(head, self._cookie)
        visitor = self._entrance.visitor(state["cookie"], used=_by_a_person(head))
        state["visitor"] = visitor
        await self._entrance.keep()
        if visitor is None and path not in OPEN:
            return await self._stranger(scope, head)
        posted = head.method == "POST"
        refusal = None if posted and path in (*STOPPING, LOWERING) else self._too_often(visitor, head)
        if refusal is None and posted:
            refusal = await self._posted(scope, head, receive, visitor)
        return None if refusal is None else await self._page(scope, refusal)

    async def _stranger(self, scope: Scope, head: Head) -> Response:
        path: str = scope["path"]
        if path in LIVE:
            return _plain(_SIGNED_OUT)
        if head.method == "POST":
            what = "You are not signed in any more. Nothing was done."
            return await self._page(scope, Refusal(403, what, "sign in, and do it again"))
        here = head.target.decode("ascii")
        if head.headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site"):
            # From a link elsewhere a browser brings no strict cookie; from this page, which asks anew, it does.
            return await self._context.page(Request(scope), "onward.html", title="One moment", section="", onward=here)
        return RedirectResponse("/sign-in" if here == "/" else f"/sign-in?next={quote(here, safe='')}", 303)

    def _too_often(self, visitor: Visitor | None, head: Head) -> Refusal | None:
        if visitor is None:
            return None  # the entrance has limits of its own
        bucket = self._limits.posts if head.method == "POST" else self._limits.gets
        wait = bucket.take(visitor.session)
        if not wait:
            return None
        after = max(1, math.ceil(wait))
        return Refusal(429, "That was too often in too short a time.", f"try again in {after} s", after)

    async def _posted(self, scope: Scope, head: Head, receive: Receive, visitor: Visitor | None) -> Refusal | None:
        """Read the form; whether it is this session's, and its operator may send it."""
        form = await received(head, receive)
        if isinstance(form, Refusal):
            return form
        given = form.pop(CSRF, "")
        path: str = scope["path"]
        if visitor is not None and path not in ("/sign-in", "/sign-in/passkey"):
            visitor = self._entrance.visitor(scope["state"]["cookie"])  # a form may take its time to come
            if visitor is None:
                return Refusal(403, "You are not signed in any more. Nothing was done.", "sign in, and do it again")
            scope["state"]["visitor"] = visitor
            if not same(given, visitor.csrf):
                hint = "go back, load the page again, and do it there"
                return Refusal(403, "This form is not of this session. Nothing was done.", hint)
            if visitor.role != "approve" and path not in OPEN_TO_VIEW:
                hint = f"pmagent operators role {visitor.operator} approve"
                what = f"{visitor.operator} may look and stop, and change nothing else. Nothing was done."
                return Refusal(403, what, hint)
        scope["state"]["form"] = form
        return self._too_often(visitor, head) if path == LOWERING and not stops("pla.mode", form) else None

    async def _on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """To the page."""
        visitor: Visitor | None = scope["state"]["visitor"]
        if scope["path"] in LIVE and visitor is not None:
            with self._limits.live.seat(visitor.session) as free:
                if not free:
                    await _plain(Refusal(429, "There are too many live connections."))(scope, receive, send)
                    return
                await self._live(scope, receive, send)
            return
        if scope["method"] == "POST":
            receive = _after_the_body(receive)
        reading_for.set(visitor.operator if visitor is not None else "")
        await self._app(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A live connection, as long as its session lasts."""
        begun = over = False

        async def watched_send(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        async def hold_to_session(connection: anyio.CancelScope) -> None:
            nonlocal over
            while self._lasts(scope["state"]["cookie"]):  # noqa: ASYNC110 - who is taken out of a file sets no event
                await anyio.sleep(LOOK_SECONDS)
            over = True
            connection.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(hold_to_session, tasks.cancel_scope)
            await self._app(scope, receive, watched_send)
            tasks.cancel_scope.cancel()
        if over and begun:
            wire: Wire = scope["state"].get("wire") or Plain()  # as all before it, or no browser understands it
            wire.dropped()  # what waited to be sent when it was cut off
            await send({"type": "http.response.body", "body": wire.carry([_OVER]) + wire.end(), "more_body": False})
        elif over:
            await _plain(_SIGNED_OUT)(scope, receive, send)

    def _lasts(self, cookie: str) -> bool:
        try:
            return self._entrance.visitor(cookie, used=False) is not None
        except (PmagentError, OSError):
            return False

    async def _page(self, scope: Scope, refusal: Refusal) -> Response:
        """A refusal for a person to read."""
        answer = await self._context.page(
            Request(scope), "refused.html", title=_TITLES.get(refusal.status, "Not taken"), section="",
            status=refusal.status, what=refusal.what, hint=refusal.hint,
        )
        if refusal.after:
            answer.headers["retry-after"] = str(refusal.after)
        return answer


_SIGNED_OUT: Final = Refusal(401, "You are not signed in.")
_OVER: Final = piece(b'event: over\ndata: {"why":"signed_out","text":"You are not signed in any more."}\n\n')
_TITLES: Final = {403: "Not allowed", 413: "Too long", 429: "Not so fast", 503: "Nobody is let in"}


def _target(scope: Scope) -> bytes:
    """Path and query as they came; of a server that does not tell, as they were understood."""
    raw: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    query: bytes = scope.get("query_string", b"")
    return raw + b"?" + query if query else raw


def _by_a_person(head: Head) -> bool:
    """Whether somebody did something, as far as the browser tells: sent a form, or went to a page by a key or a click
    (Fetch metadata: Sec-Fetch-User). Requests that a page makes by itself keep no session alive."""
    mode = head.headers.get(b"sec-fetch-mode")
    if head.method == "POST":
        return True
    if mode is None:  # a browser that tells nothing
        return head.target.partition(b"?")[0].decode("ascii") not in LIVE and PART not in head.headers
    return mode == b"navigate" and head.headers.get(b"sec-fetch-user") == b"?1"


def _plain(refusal: Refusal) -> Response:
    """A refusal for a program, or for nobody."""
    text = f"{refusal.what} {refusal.hint}".strip() + "\n"
    headers = {"allow": ", ".join(METHODS)} if refusal.status == 405 else {}
    return PlainTextResponse(text, refusal.status, headers)


def _cookie(head: Head, name: str) -> str:
    """The cookie's value, if it was sent once."""
    values = [
        value.strip()
        for pair in head.headers.get(b"cookie", b"").decode("latin-1").split(";")
        for key, _, value in [pair.partition("=")]
        if key.strip() == name
    ]
    return values[0] if len(values) == 1 else ""


def _after_the_body(receive: Receive) -> Receive:
    """For a page whose body has been read: an empty one, then whatever comes."""
    given = False

    async def next_message() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": b"", "more_body": False}

    return next_message
