"""From an allowed name to a connection: the proxy asks for the addresses once, looks at each, and connects to one.

The connection goes to the very address that was looked at. A name server that answers otherwise the next time moves
nothing, for it is not asked again.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import anyio
import anyio.abc

from pmagent.actors.sandbox.egress.addresses import refusal
from pmagent.actors.sandbox.egress.rules import ContactRefused

Endpoint = tuple[str, int]
"""An IP address and a port."""

ADDRESSES_TRIED: Final = 4
"""So many of a host's addresses are tried, in the order of the resolver's answer."""


class HostUnreachable(ContactRefused, exit_code=1):
    """The host was allowed, and could not be reached."""


async def ask(name: str, port: int) -> list[Endpoint]:
    """The addresses of ``name``, as this machine's resolver tells them. Raises OSError.

    The dot makes the name complete: no search domain of this machine is tried behind it.
    """
    found = await anyio.getaddrinfo(f"{name}.", port, type=socket.SOCK_STREAM)
    return [(str(address[0]), int(address[1])) for *_, address in found]


def no_public_host(address: str, port: int) -> str:
    """The kind of ``address`` when it is somebody's inside, this machine's own included; "" for a public host's."""
    del port  # decided by the rules
    return refusal(address) or ("this machine's own" if _ours(address) else "")


class Upstream(NamedTuple):
    """The world that a proxy reaches. Another one than the default is for tests, which reach this machine only."""

    ask: Callable[[str, int], Awaitable[Sequence[Endpoint]]] = ask
    refusal: Callable[[str, int], str] = no_public_host


UPSTREAM: Final = Upstream()


async def find(name: str, port: int, upstream: Upstream, seconds: float) -> list[Endpoint]:
    """Where to connect to for ``name``. Raises ContactRefused when any of its addresses is refused: whoever answers
    with such an address is not believed in the rest. Raises HostUnreachable when it has none."""
    try:
        with anyio.fail_after(seconds):
            found = await upstream.ask(name, port)
    except TimeoutError as error:
        raise HostUnreachable(f"{name}: no name server answered in {seconds:g} s", status=504) from error
    except OSError as error:
        raise HostUnreachable(f"{name} has no address", "check the name", status=502) from error
    if not found:
        raise HostUnreachable(f"{name} has no address", "check the name", status=502)
    for address, number in found:
        if kind := upstream.refusal(address, number):
            raise ContactRefused(f"{name} has an address that is {kind}", "only public hosts can be reached")
    return list(dict.fromkeys(found))[:ADDRESSES_TRIED]


async def connect(name: str, endpoints: Sequence[Endpoint], seconds: float) -> tuple[anyio.abc.SocketStream, str]:
    """A connection to the first of ``endpoints`` that takes one, and its address. Raises HostUnreachable."""
    for address, port in endpoints:
        try:
            with anyio.fail_after(seconds):
                return await anyio.connect_tcp(address, port), address
        except OSError:  # TimeoutError is one
            continue
    raise HostUnreachable(f"{name} takes no connection", "try again later", status=502)


def _ours(address: str) -> bool:
    """Whether this machine has ``address``: only then can a socket be bound to it. In doubt it has."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError as error:
        return error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
    return True
