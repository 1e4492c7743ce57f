"""The console's real server, over a real socket: what bytes get through to a page, and whose."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from anyio.from_thread import start_blocking_portal

from pmagent.console import serving
from pmagent.console.address import Address
from pmagent.workspace.layout import Layout
from pmagent.workspace.trust import accept

AS_ANOTHER = """
import os, socket, sys
os.setgroups([]); os.setgid(54321); os.setuid(54321)
made = socket.socket()
made.settimeout(20)
made.connect(("127.0.0.1", int(sys.argv[1])))
try:
    made.sendall(b"GET /sign-in HTTP/1.1\\r\\nHost: 127.0.0.1:" + sys.argv[1].encode() + b"\\r\\n\\r\\n")
    sys.stdout.write(repr(made.recv(100)))
except ConnectionError:
    sys.stdout.write("refused")
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A console is served at this port of loopback, over an empty workspace, without a daemon."""
    workspace = tmp_path_factory.mktemp("workspace")
    Layout(workspace).prepare()
    accept(workspace)
    up, served = threading.Event(), []

    def ready(address: Address) -> None:
        served.append(address.port)
        up.set()

    with start_blocking_portal() as portal:
        ended = portal.call(_event)
        serving_it = portal.start_task_soon(serving.serve, workspace, ended, ready)
        assert up.wait(120)
        yield served[0]
        portal.call(ended.set)
        serving_it.result(120)


async def _event() -> anyio.Event:
    return anyio.Event()


def said(port: int, request: bytes) -> list[bytes]:
    """The status lines that come back until the server has enough."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as client:
        client.sendall(request.replace(b"PORT", str(port).encode()))
        got = bytearray()
        while chunk := client.recv(65_536):
            got += chunk
    return [line for line in bytes(got).split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]


OWN = b"Host: 127.0.0.1:PORT\r\nConnection: close\r\n"


def test_a_page_is_answered(port: int) -> None:
    assert said(port, b"GET /sign-in HTTP/1.1\r\n" + OWN + b"\r\n") == [b"HTTP/1.1 200 OK"]
    assert said(port, b"HEAD /sign-in HTTP/1.1\r\n" + OWN + b"\r\n") == [b"HTTP/1.1 200 OK"]


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        pytest.param(b"GET http://evil.example/ HTTP/1.1\r\n" + OWN + b"\r\n", 400, id="absolute form"),
        pytest.param(b"GET http://127.0.0.1:PORT/sign-in HTTP/1.1\r\n" + OWN + b"\r\n", 400, id="absolute form, ours"),
        pytest.param(b"CONNECT evil.example:443 HTTP/1.1\r\n" + OWN + b"\r\n", 405, id="connect"),
        pytest.param(b"OPTIONS * HTTP/1.1\r\n" + OWN + b"\r\n", 405, id="options"),
        pytest.param(b"GET /sign-in HTTP/1.1\r\n" + OWN + b"Host: evil.example\r\n\r\n", 400, id="two hosts"),
        pytest.param(b"GET /sign-in HTTP/1.1\r\nConnection: close\r\n\r\n", 400, id="no host"),
        pytest.param(b"GET /sign-in HTTP/1.0\r\n\r\n", 400, id="no host, 1.0"),
        pytest.param(b"GET /sign-in HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", 421, id="rebinding"),
        pytest.param(
            b"GET / HTTP/1.1\r\nConnection: close\r\nHost: 127.0.0.1:PORT\r\n evil.example\r\n\r\n", 421, id="folded"
        ),
        pytest.param(b"GET /sign-in HTTP/1.1\r\n" + OWN + b"Host : evil.example\r\n\r\n", 400, id="blank before colon"),
        pytest.param(b"GET /sign-in HTTP/1.1\r\n" + OWN + b"X: a\x00b\r\n\r\n", 400, id="null"),
        pytest.param(b"GET /sign-in HTTP/1.1\r\n" + OWN + b"X: " + b"a" * 40_000 + b"\r\n\r\n", 431, id="long head"),
        pytest.param(b"GET /sign-in HTTP/1.1\r\n" + OWN + b"Origin: null\r\n\r\n", 403, id="origin null"),
        pytest.param(b"POST /sign-in HTTP/1.1\r\n" + OWN + b"Content-Length: 0\r\n\r\n", 403, id="no origin"),
        pytest.param(
            b"POST /sign-in HTTP/1.1\r\n" + OWN + b"Origin: http://127.0.0.1:PORT\r\nContent-Length: 3\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, id="two lengths",
        ),
        pytest.param(
            b"POST /sign-in HTTP/1.1\r\n" + OWN + b"Origin: http://127.0.0.1:PORT\r\nContent-Length: 3\r\n"
            b"Content-Length: 4\r\n\r\na=b", 400, id="two content-lengths",
        ),
        pytest.param(
            b"POST /sign-in HTTP/1.1\r\n" + OWN + b"Origin: http://127.0.0.1:PORT\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 70000\r\n\r\n", 413, id="too long",
        ),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, id="TLS"),
        pytest.param(b"GET /live HTTP/1.1\r\n" + OWN + b"\r\n", 401, id="live, signed out"),
        pytest.param(
            b"GET /live HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nConnection: close\r\n\r\n",
            401, id="websocket",
        ),
    ],
)  # fmt: skip
def test_what_is_not_a_browsers_own_request_is_refused(port: int, request_: bytes, status: int) -> None:
    (line,) = said(port, request_)
    assert line.startswith(f"HTTP/1.1 {status} ".encode())


def test_the_body_of_a_refused_request_is_no_second_request(port: int) -> None:
    inner = b"GET /sign-in HTTP/1.1\r\n" + OWN + b"\r\n"
    own = OWN.replace(b"Connection: close\r\n", b"")
    for length in (b"Content-Length: 0" + str(len(inner)).encode(), b"Transfer-Encoding: xchunked"):
        lines = said(port, b"POST /x HTTP/1.1\r\n" + own + length + b"\r\n\r\n" + inner)
        assert len(lines) == 1, lines
        assert b" 4" in lines[0] or b" 5" in lines[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_of_this_machine_is_not_answered(port: int) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", AS_ANOTHER, str(port)], capture_output=True, text=True, timeout=60,
        check=True,
    )
    assert done.stdout in ("refused", "b''"), done
    assert said(port, b"GET /sign-in HTTP/1.1\r\n" + OWN + b"\r\n") == [b"HTTP/1.1 200 OK"], "it goes on"
    assert done.stderr == ""


def test_many_who_hold_a_connection_open_keep_nobody_out(port: int) -> None:
    held = [socket.create_connection(("127.0.0.1", port), timeout=120) for _ in range(100)]
    try:
        for client in held:
            client.sendall(b"GET /sign-in HTTP/1.1\r\nHost: ")
        assert said(port, b"GET /sign-in HTTP/1.1\r\n" + OWN + b"\r\n") == [b"HTTP/1.1 200 OK"]
    finally:
        for client in held:
            client.close()


def test_what_lies_beside_the_static_files_is_not_served(port: int) -> None:
    for target in (b"/static/../app.py", b"/static/%2e%2e/app.py", b"/static//etc/passwd", b"/static/..%2fapp.py"):
        (line,) = said(port, b"GET " + target + b" HTTP/1.1\r\n" + OWN + b"\r\n")
        assert line.startswith(b"HTTP/1.1 40")
    assert Path(serving.__file__).with_name("app.py").exists()
