"""Runs of programs with a network, in real sandboxes, for tests; the outside is a host on this machine's loopback."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from pmagent.actors.sandbox.egress.upstream import Upstream
from pmagent.actors.sandbox.runner import run
from pmagent.actors.sandbox.spec import Outcome
from tests.support.proxied import NAME, TRACE, Behave, Host, answering, host, outside
from tests.support.sandboxes import TRY, spec_for

INSIDE = f"""{TRY}
import http.client, socket, urllib.error, urllib.request
def asked(url):
    try:
        return urllib.request.urlopen(url).read().decode()
    except urllib.error.HTTPError as refusal:
        return str(refusal.code) + " " + refusal.read().decode().split("\\n")[0]
def tunnelled(name, port=443):
    client = http.client.HTTPConnection("127.0.0.1", 3128)
    client.set_tunnel(name, port)
    try:
        client.connect()
    except OSError as refusal:
        return str(refusal)
    client.sock.sendall(b"hello")
    client.sock.shutdown(socket.SHUT_WR)
    return client.sock.makefile().read()
"""
"""Before each program: what it asks with."""


async def echo(stream: anyio.abc.SocketStream, heard: bytearray) -> None:
    """Behaviour: everything back, and the end when the end comes."""
    async for data in stream:
        heard += data
        await stream.send(data)


async def allowed(folder: Path, code: str, world: Upstream, **more: Any) -> Outcome:
    """Run ``code`` with a network of ``NAME`` alone."""
    more.setdefault("allow_domains", (NAME,))
    return await run(spec_for(folder, INSIDE + code, net="allow", trace=TRACE, **more), upstream=world)


def ran(folder: Path, code: str, behave: Behave | None = None, **more: Any) -> tuple[list[str], Outcome, Host]:
    """The words of a program that ended well, with one host outside."""

    async def body() -> tuple[Outcome, Host]:
        async with host(behave or answering()) as made:
            return await allowed(folder / "artifacts", code, outside([made.endpoint]), **more), made

    outcome, made = anyio.run(body)
    assert outcome.exit_code == 0, outcome
    return outcome.stdout.decode().splitlines(), outcome, made


def sockets() -> set[str]:
    """The sockets that this process holds."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:
            continue  # the listing's own
    return {link for link in found if link.startswith("socket:")}
