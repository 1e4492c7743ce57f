"""Where the console listens: a loopback port, or a UNIX socket (docs/design.md §18.2)."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from pmagent.console.paths import ConsolePaths
from pmagent.events.atomic import write_atomic
from pmagent.events.errors import PmagentError
from pmagent.workspace.layout import reachable
from pmagent.workspace.settings import ConsoleSettings

LOOPBACK: Final = "127.0.0.1"
BACKLOG: Final = 512


class PortTaken(PmagentError, exit_code=2):
    """Another program listens where the console should."""


class Address(msgspec.Struct, frozen=True):
    """``address.json``: ``port`` 0 is the socket at ``path``; ``url`` begins every address of a page; ``pid`` is the
    process that serves it."""

    pid: int
    url: str
    port: Annotated[int, Meta(ge=0, le=65_535)] = 0
    path: str = ""


def bound(settings: ConsoleSettings, paths: ConsolePaths) -> tuple[socket.socket, Address]:
    """A listening socket, and what it is called. Raises PortTaken, OSError."""
    if settings.listen == "unix":
        return _unix(paths)
    wanted = settings.port or remembered(paths)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port of the process before, at once
        try:
            listener.bind((LOOPBACK, wanted))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            if settings.port:
                what = f"port {settings.port} of {LOOPBACK} is another program's"
                raise PortTaken(what, "give another under [console] port, or 0 for any") from error
            listener.bind((LOOPBACK, 0))
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    port = listener.getsockname()[1]
    return listener, Address(os.getpid(), f"http://{LOOPBACK}:{port}", port)


@contextmanager
def alone_at_localhost(address: Address, settings: ConsoleSettings) -> Iterator[None]:
    """Keep [::1] at our port from everybody while the block runs, where passkeys are used: for ``localhost`` a browser
    asks there first. Nothing listens there, so it comes to us. Raises PortTaken: another program has it."""
    if settings.passkeys == "off" or not address.port:
        yield
        return
    try:
        held = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    except OSError:  # there is no IPv6 here, for nobody
        yield
        return
    with held:
        try:
            held.bind(("::1", address.port))
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                what = f"port {address.port} of [::1] is another program's, to which a browser would go for localhost"
                raise PortTaken(what, "give another under [console] port, or set passkeys = \"off\"") from error
        yield


def _unix(paths: ConsolePaths) -> tuple[socket.socket, Address]:
    paths.socket.unlink(missing_ok=True)  # the daemon has one console at a time: what lies here is nobody's
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with reachable(paths.socket) as address:
            listener.bind(address)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener, Address(os.getpid(), "http://localhost", 0, str(paths.socket))


def remembered(paths: ConsolePaths) -> int:
    """The port of the console before, so that browsers find the new one; 0 without one."""
    known = read(paths.address)
    return known.port if known is not None else 0


def read(path: Path) -> Address | None:
    """The content of ``address.json``; None when there is none, or none that can be understood."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Address)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def tell(paths: ConsolePaths, address: Address) -> None:
    """Write it down for ``pmagent console`` and for the next start. Raises OSError."""
    write_atomic(paths.address, msgspec.json.encode(address) + b"\n", mode=0o600)
