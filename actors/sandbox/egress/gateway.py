"""The one way out of a sandbox with ``net: allow``: opened before the program starts, shut when it has ended."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
from typing import Final

import anyio
import anyio.to_thread

from pmagent.actors.sandbox.egress import namespace as helper
from pmagent.actors.sandbox.egress.proxy import Proxy
from pmagent.actors.sandbox.egress.rules import PORT, Caps, rules
from pmagent.actors.sandbox.egress.upstream import Upstream
from pmagent.actors.sandbox.pid_namespace import PidNamespace
from pmagent.actors.sandbox.spec import SandboxSpec, SandboxUnavailable
from pmagent.contracts.orchestra import NetContact
from pmagent.events.tree import held

_SECONDS: Final = 10.0
"""For the way into a sandbox and back; it takes a fiftieth of one."""
_REPLY_BYTES: Final = 1000
_INT: Final = struct.Struct("i")


class Gateway:
    """The way out of one sandbox. Until it is opened nothing listens in there."""

    def __init__(self, spec: SandboxSpec, upstream: Upstream, caps: Caps) -> None:
        self._proxy = Proxy(rules(spec.allow_domains, spec.trace), upstream, caps)
        self._listener: socket.socket | None = None
        self._open = anyio.Event()
        self._use = anyio.CancelScope()

    @property
    def contacts(self) -> tuple[NetContact, ...]:
        """The requests to the proxy, in order."""
        return self._proxy.ledger.contacts

    @property
    def contacts_dropped(self) -> int:
        """How much more was."""
        return self._proxy.ledger.dropped

    async def open(self, inside: PidNamespace) -> None:
        """Listen in there. Raises SandboxUnavailable where that is not possible: then the program must not start."""
        self._listener = await anyio.to_thread.run_sync(_listening, inside)
        self._open.set()

    async def serve(self) -> None:
        """Serve those inside, from when it is opened until it is shut."""
        with self._use:
            await self._open.wait()
            assert self._listener is not None
            await self._proxy.serve(self._listener)

    def shut(self) -> None:
        """Close every connection; whoever wants one from now on is refused."""
        self._use.cancel()

    def close(self) -> None:
        """Let go of the sandbox's network; nobody serves any more."""
        if self._listener is not None:
            self._listener.close()


def _listening(inside: PidNamespace) -> socket.socket:
    try:
        namespace = inside.namespace("net")
    except OSError as error:
        raise _cannot(error.strerror or "it is out of sight") from error
    with held(namespace):
        if helper.same(namespace):  # whoever listens there serves everybody on this machine
            raise _cannot("it has none of its own")
        return _handed_out(namespace)


def _handed_out(namespace: int) -> socket.socket:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            handed = (namespace, theirs.fileno())
            command = [sys.executable, "-I", "-S", helper.__file__, *map(str, handed), str(PORT)]
            try:
                done = subprocess.run(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
                    pass_fds=handed, timeout=_SECONDS, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired as error:
                raise _cannot(f"no answer in {_SECONDS:g} s") from error
            except OSError as error:
                raise _cannot(f"{sys.executable}: {error.strerror}") from error
        # Not by socket.recv_fds, which takes flags and forgets them: no sandbox may inherit the socket of another.
        reply, handed_back, _, _ = ours.recvmsg(_REPLY_BYTES, socket.CMSG_LEN(_INT.size), socket.MSG_CMSG_CLOEXEC)
    if not handed_back:
        reason = reply.decode(errors="replace") or f"{sys.executable} ended with {done.returncode} and said nothing"
        raise _cannot(reason)
    (descriptor,) = _INT.unpack(handed_back[0][2])
    return socket.socket(fileno=descriptor)


def _cannot(reason: str) -> SandboxUnavailable:
    return SandboxUnavailable(
        f"the sandbox's network cannot be entered ({reason}), so net: allow is not possible",
        "the service needs setns(2): see whether its container's seccomp profile forbids it; or say net: deny",
    )
