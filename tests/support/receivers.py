"""Receivers of notifications on the loopback address: an HTTP server and a mail server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult

SECONDS = 120.0


class Posts:
    """The posts: (path, headers, body). ``answers``: the next answers' codes; then 200. ``hang``: none comes."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.answers: list[int] = []
        self.hang = threading.Event()
        self.release = threading.Event()
        self.news = threading.Condition()
        self.port = 0

    def wait(self, count: int) -> list[tuple[str, dict[str, str], bytes]]:
        """All of them, when there are ``count``."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.got) >= count, SECONDS), self.got
            return list(self.got)


@contextmanager
def posts() -> Iterator[Posts]:
    """A server that takes posts."""
    posted = Posts()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            with posted.news:
                posted.got.append((self.path, {name.lower(): text for name, text in self.headers.items()}, body))
                answer = posted.answers.pop(0) if posted.answers else 200
                posted.news.notify_all()
            if posted.hang.is_set():
                posted.release.wait(SECONDS)
                return
            self.send_response(answer)
            self.send_header("location", "/elsewhere")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    posted.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield posted
    finally:
        posted.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


class Mails:
    """The mails received, and who signed in."""

    def __init__(self) -> None:
        self.got: list[Message] = []
        self.signed_in: list[tuple[str, str]] = []
        self.news = threading.Condition()

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - its name
        """See aiosmtpd."""
        with self.news:
            self.got.append(message_from_bytes(envelope.content))
            self.news.notify_all()
        return "250 taken"

    def authenticated(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        """See aiosmtpd: everybody may."""
        self.signed_in.append((data.login.decode(), data.password.decode()))
        return AuthResult(success=True)

    def wait(self, count: int) -> list[Message]:
        """All of them, when there are ``count``."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.got) >= count, SECONDS)
            return list(self.got)


@contextmanager
def mails(tls: SSLContext | None = None) -> Iterator[tuple[Mails, int]]:
    """A mail server, and its port; with ``tls`` it offers STARTTLS, and signs in nobody without."""
    mailed = Mails()

    def protocol() -> SMTP:
        return SMTP(
            mailed, hostname="127.0.0.1", tls_context=tls, auth_required=tls is not None,
            authenticator=mailed.authenticated, loop=loop,
        )  # fmt: skip

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(loop.create_server(protocol, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield mailed, server.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
