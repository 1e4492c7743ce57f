"""A loopback server that speaks enough of a chat provider's HTTP API for its real client: scripted answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec


class Answer(msgspec.Struct, kw_only=True):
    """An HTTP answer; ``body`` bytes are sent as they are, anything else as JSON. ``hang``: none comes."""

    status: int = 200
    headers: dict[str, str] = {}
    body: Any = b""
    hang: bool = False


By = Callable[[dict[str, Any]], Answer]
"""Answers a request by its body."""


class Provider:
    """The server: ``answers`` in order, or ``by`` what is asked; ``seen`` the requests' bodies, ``keys`` their
    authorization."""

    def __init__(self, answers: list[Answer], by: By | None = None) -> None:
        self.answers = answers
        self.by = by
        self.seen: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.paths: list[str] = []
        self.url = ""
        self.released = threading.Event()
        """Set at the end, so that who hangs goes."""

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """The next one."""
        self.paths.append(path)
        self.keys.append(headers.get("authorization", ""))
        asked = json.loads(body)
        self.seen.append(asked)
        return self.answers.pop(0) if self.by is None else self.by(asked)


@contextmanager
def provider(*answers: Answer, by: By | None = None) -> Iterator[Provider]:
    """A running server with these answers."""
    made = Provider(list(answers), by)

    class Handler(BaseHTTPRequestHandler):
        """One request a connection, so that none outlives its server."""

        def do_POST(self) -> None:
            """Answer the next."""
            length = int(self.headers.get("content-length", "0"))
            answer = made.answer(self.path, self.headers, self.rfile.read(length))  # type: ignore[arg-type]
            if answer.hang:
                made.released.wait()
                return
            body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {"content-type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield made
    finally:
        made.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def completion(content: str | None, *, finish: str = "stop", **message: Any) -> Answer:
    """A chat completion as the provider writes one."""
    return Answer(body={
        "id": "c-1", "object": "chat.completion", "created": 1, "model": "gpt-x-2026",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
        "usage": {"prompt_tokens": 21, "completion_tokens": 7, "total_tokens": 28},
    })


def error(status: int, code: str = "", **headers: str) -> Answer:
    """An error as the provider writes one."""
    said = {"message": "no", "type": "error", "code": code or None}
    return Answer(status=status, body={"error": said}, headers={k.replace("_", "-"): v for k, v in headers.items()})
