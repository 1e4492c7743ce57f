"""Whose process is at the other end of a connection: only this user's (and root's) are listened to.

A loopback port is open to everybody on the machine, and so is a cookie: browsers send it to whatever listens on another
port of the same host. What a cookie is worth is therefore bound to the user who sends it. Linux tells whose a loopback
connection is, in ``/proc/net/tcp`` (proc_pid_net(5)).
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Final

from pmagent.console.address import LOOPBACK, Address
from pmagent.wire import peer_uid, reachable

TABLE: Final = Path("/proc/net/tcp")
_ESTABLISHED: Final = "01"
_LISTENING: Final = "0A"


def is_own(connection: socket.socket) -> bool:
    """Whether the other end is a process of this user or of root. Where nobody can tell, it is not."""
    uid = owner(connection)
    return uid is not None and uid in (os.geteuid(), 0)


def owner(connection: socket.socket) -> int | None:
    """The user id of the other end, of a UNIX connection or one over IPv4 loopback; None: nobody can tell."""
    try:
        if connection.family == socket.AF_UNIX:
            return peer_uid(connection)
        here, there = connection.getsockname(), connection.getpeername()
        return _listed(there, here, _ESTABLISHED) if connection.family == socket.AF_INET else None
    except (OSError, ValueError):
        return None


def serves(address: Address) -> bool:
    """Whether a process of this user or of root listens there, so that it can be told what lets somebody in."""
    try:
        if address.port:
            uid = _listed((LOOPBACK, address.port), ("0.0.0.0", 0), _LISTENING)  # noqa: S104 - so the table has nobody
            return uid is not None and uid in (os.geteuid(), 0)
        with reachable(Path(address.path)) as path, socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
            return is_own(probe)
    except (OSError, ValueError):
        return False


def _listed(local: tuple[str, int], remote: tuple[str, int], state: str) -> int | None:
    """Whose the socket from ``local`` to ``remote`` is. Only one that somebody holds open counts: one that its process
    has closed is listed as root's. Raises OSError, ValueError."""
    table = TABLE.read_text("ascii")
    wanted = [_written(local), _written(remote), state]
    for line in table.splitlines():
        fields = line.split()
        if fields[1:4] == wanted and fields[9] != "0":
            return int(fields[7])
    return None


def _written(end: tuple[str, int]) -> str:
    """An address as the table has it: the four bytes as one number of this machine, in hexadecimal."""
    return f"{int.from_bytes(socket.inet_aton(end[0]), sys.byteorder):08X}:{end[1]:04X}"
