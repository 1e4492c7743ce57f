"""The console's entrance and guard for tests: over a workspace on disk, with a clock that stands, and a page that notes
what reaches it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import anyio
import msgspec
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pmagent.console.address import Address
from pmagent.console.auth import operators, passwords
from pmagent.console.auth.entrance import Entered, Entrance, invite
from pmagent.console.auth.guard import Guard, Limits, cookie_name
from pmagent.console.auth.operators import Operator, Role
from pmagent.console.pages.context import PageContext
from pmagent.workspace.settings import ConsoleSettings

PORT = 8123
HOST = f"127.0.0.1:{PORT}"
ORIGIN = f"http://{HOST}"
SECRET = "correct horse battery"
FORM = "application/x-www-form-urlencoded"

Headers = list[tuple[str, str]]


class Clock:
    """A clock that stands until it is set."""

    def __init__(self, now: float = 1_790_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Seconds."""
        return self.now


class Answer(msgspec.Struct):
    """An answer that came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The header, which stands there once; None: it does not."""
        found = [value for key, value in self.headers if key == name]
        assert len(found) <= 1, found
        return found[0] if found else None

    @property
    def text(self) -> str:
        """The body."""
        return self.body.decode()


class Probe:
    """A page behind the guard that notes what reaches it, and answers with headers that it must not."""

    def __init__(self) -> None:
        self.reached: list[Scope] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        self.reached.append(scope)
        assert (await receive())["type"] == "http.request"
        answer = PlainTextResponse("a page", headers={
            "Access-Control-Allow-Origin": "*", "Cache-Control": "public", "X-Frame-Options": "ALLOWALL", "Server": "x",
        })  # fmt: skip
        await answer(scope, receive, send)


class GuardedConsole:
    """A workspace with operators, the entrance to its console, and the guard before ``app``."""

    def __init__(self, workspace: Path, app: ASGIApp | None = None, **operators_: Role) -> None:
        self.context = PageContext(workspace)
        self.context.layout.prepare()
        self.paths = self.context.paths
        self.paths.prepare()
        self.clock, self.steady = Clock(), Clock(0.0)
        self.notes: list[tuple[str, str, str, str]] = []
        self.unrecordable: Exception | None = None
        for name, role in operators_.items():
            self.add(name, role)
        self.probe = Probe()
        self.app = app or self.probe
        self.start()

    def start(self, port: int = PORT) -> None:
        """The console, as it comes up; once more: as it comes back."""
        self.entrance = Entrance(self.paths, ConsoleSettings(), self._note, self.clock, self.steady)
        address = Address(1, f"http://127.0.0.1:{port}" if port else "http://localhost", port)
        self.guard = Guard(
            self.app, context=self.context, entrance=self.entrance, address=address, limits=Limits(self.steady)
        )

    async def _note(self, operator: str, what: str, by: str, reason: str) -> None:
        if self.unrecordable is not None:
            raise self.unrecordable
        self.notes.append((operator, what, by, reason))

    @property
    def cookie_name(self) -> str:
        """The name of the console's cookie."""
        return cookie_name(self.context.workspace)

    def add(self, name: str, role: Role, secret: str | None = None) -> Operator:
        """One operator more."""
        return operators.add(self.paths.operators, name, role, secret)

    def files(self) -> dict[str, bytes]:
        """The contents of the console's folder, and of the operators' file."""
        found = [path for path in self.paths.folder.rglob("*") if path.is_file()]
        return {str(path): path.read_bytes() for path in [*found, self.paths.operators]}

    def invited(self, name: str) -> str:
        """A one-time token."""
        return invite(self.paths, operators.named(self.paths.operators, name), self.clock)

    def entered(self, name: str, before: str = "") -> Entered:
        """Somebody who has come in by a one-time address."""
        return anyio.run(self.entrance.enter, self.invited(name), before)

    def ask(
        self, method: str, target: str, headers: Iterable[tuple[str, str]] = (), body: bytes | Iterable[bytes] = b"",
        *, host: str | None = HOST,
    ) -> Answer:
        """One request, exactly as it is given here."""
        given = [*([("host", host)] if host is not None else []), *headers]
        return anyio.run(asked, self.guard, method, target, given, [body] if isinstance(body, bytes) else list(body))

    def get(self, target: str, cookie: str = "", *headers: tuple[str, str]) -> Answer:
        """A page, as a browser asks for it."""
        return self.ask("GET", target, [*self.cookies(cookie), *headers])

    def post(self, target: str, entered: Entered | None = None, **fields: str) -> Answer:
        """A form, as a browser sends it from a page of ours."""
        carried = {} if entered is None else {"csrf": entered.visitor.csrf}
        cookie = "" if entered is None else entered.cookie
        return self.send(target, {**carried, **fields}, cookie)

    def send(self, target: str, fields: dict[str, str] | str, cookie: str = "", *headers: tuple[str, str]) -> Answer:
        """A form with these fields; ``headers`` take the place of a browser's own."""
        body = (fields if isinstance(fields, str) else urlencode(fields)).encode("latin-1")
        own = {"origin": ORIGIN, "sec-fetch-site": "same-origin", "content-type": FORM}
        own["content-length"] = str(len(body))
        for name, _ in headers:
            own.pop(name, None)
        kept = [(name, value) for name, value in headers if value != ABSENT]
        return self.ask("POST", target, [*self.cookies(cookie), *own.items(), *kept], body)

    def cookies(self, cookie: str) -> Headers:
        """The header, if there is a cookie."""
        return [("cookie", f"{self.cookie_name}={cookie}")] if cookie else []


def refused(guarded: GuardedConsole, answer: Answer, status: int) -> None:
    """It was refused with this status, and no page saw it. Raises AssertionError."""
    assert answer.status == status, answer
    assert guarded.probe.reached == []


ABSENT = "(absent)"
"""In ``GuardedConsole.send``: the header is not sent."""


async def asked(
    app: ASGIApp, method: str, target: str, headers: Headers, body: list[bytes] | AsyncIterator[bytes]
) -> Answer:
    """The answer of an ASGI application to one request, whose body comes in these pieces."""
    path, _, query = target.partition("?")
    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": unquote(path), "raw_path": path.encode("latin-1"), "query_string": query.encode("latin-1"),
        "root_path": "", "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", PORT),
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
    }  # fmt: skip
    pieces = _pieces(body)
    sent: list[Message] = []

    async def receive() -> Message:
        return await anext(pieces, {"type": "http.disconnect"})

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    begun = [message for message in sent if message["type"] == "http.response.start"]
    assert len(begun) == 1, sent
    return Answer(
        begun[0]["status"], [(name.decode(), value.decode("latin-1")) for name, value in begun[0]["headers"]],
        b"".join(message.get("body", b"") for message in sent),
    )


async def _pieces(body: list[bytes] | AsyncIterator[bytes]) -> AsyncIterator[Message]:
    last: bytes | None = None
    if isinstance(body, list):
        for piece in body[:-1]:
            yield {"type": "http.request", "body": piece, "more_body": True}
        last = body[-1] if body else None
    else:
        async for piece in body:
            yield {"type": "http.request", "body": piece, "more_body": True}
        last = b""
    if last is not None:
        yield {"type": "http.request", "body": last, "more_body": False}


def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on nothing waits for the disk: it is not what these tests are about."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def cheap_secrets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """From now on secrets cost nothing; what was derived, in order."""
    derived: list[str] = []

    def derive(secret: str, salt: bytes) -> bytes:
        derived.append(secret)
        return hashlib.sha256(salt + secret.encode("utf-8", "surrogatepass")).digest()

    monkeypatch.setattr(passwords, "derive", derive)
    return derived
