"""The owner of the process at the other end of a connection: only this user's (and root's) are listened to.

A loopback port is open to everybody on the machine, and so is a cookie: browsers send it to whatever listens on another
port of the same host. A cookie is therefore bound to the user who sends it. Linux tells whose a loopback connection is:
about one socket, by sock_diag(7); where that is not built in, in the table of all of them (``/proc/net/tcp``,
proc_pid_net(5)), which takes milliseconds to read.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path
from typing import Final

from pmagent.console.address import LOOPBACK, Address
from pmagent.service.wire import peer_uid
from pmagent.workspace.layout import reachable

End = tuple[str, int]
"""Address and port."""

TABLE: Final = Path("/proc/net/tcp")
ESTABLISHED: Final = 1
LISTENING: Final = 10
_NOBODY: Final = ("0.0.0.0", 0)  # noqa: S104 - the other end of a socket that listens

_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_HEADER: Final = struct.Struct("=IHHII")
"""Length, type, flags, number, sender (netlink(7))."""
_ENDS: Final = struct.Struct("!HH4s12x4s12x")
"""Ports and addresses of both ends, ours first, in the order of the network; then interface and cookie."""
_ABOUT: Final = struct.Struct(f"=xB2x{_ENDS.size}s12x12xII")
"""State; ends; after interface, cookie, expiry and queues: user id and inode (0: no process holds it)."""
_ANSWER_SECONDS: Final = 1.0


def is_own(connection: socket.socket) -> bool:
    """Whether the other end is a process of this user or of root. Where nobody can tell, it is not."""
    uid = owner(connection)
    return uid is not None and uid in (os.geteuid(), 0)


def owner(connection: socket.socket) -> int | None:
    """The user id of the other end, of a UNIX connection or one over IPv4 loopback; None: nobody can tell."""
    try:
        if connection.family == socket.AF_UNIX:
            return peer_uid(connection)
        if connection.family != socket.AF_INET:
            return None
        return _holder(connection.getpeername(), connection.getsockname(), ESTABLISHED)
    except (OSError, ValueError):
        return None


def serves(address: Address) -> bool:
    """Whether a process of this user or of root listens there, so that it can be told what lets somebody in."""
    try:
        if address.port:
            uid = _holder((LOOPBACK, address.port), _NOBODY, LISTENING)
            return uid is not None and uid in (os.geteuid(), 0)
        with reachable(Path(address.path)) as path, socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
            return is_own(probe)
    except (OSError, ValueError):
        return False


def _holder(local: End, remote: End, state: int) -> int | None:
    """The user of the socket from ``local`` to ``remote``. Only one that somebody holds open counts: the rest of one
    that its process has closed is said to be root's. Raises OSError, ValueError."""
    try:
        return _parse(local, remote, state)
    except OSError:
        return _listed(local, remote, state)


def _parse(local: End, remote: End, state: int) -> int | None:
    """As ``_holder``, by sock_diag. Raises OSError where that is not there, or knows no such socket."""
    ends = _ENDS.pack(local[1], remote[1], socket.inet_aton(local[0]), socket.inet_aton(remote[0]))
    asked = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ends
    asked += struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)  # any interface, no cookie
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as kernel:
        kernel.settimeout(_ANSWER_SECONDS)
        kernel.send(_HEADER.pack(_HEADER.size + len(asked), _BY_FAMILY, 1, 1, 0) + asked)
        answer, (sender, _) = kernel.recvfrom(4096)
    if len(answer) < _HEADER.size + _ABOUT.size or _HEADER.unpack_from(answer)[1] != _BY_FAMILY or sender != 0:
        raise OSError("it is not told")
    found, between, uid, inode = _ABOUT.unpack_from(answer, _HEADER.size)
    return int(uid) if found == state and between == ends and inode else None


def _listed(local: End, remote: End, state: int) -> int | None:
    """As ``_holder``, by the table. Raises OSError, ValueError."""
    wanted = [_written(local), _written(remote), f"{state:02X}"]
    for line in TABLE.read_text("ascii").splitlines():
        fields = line.split()
        if fields[1:4] == wanted and fields[9] != "0":
            return int(fields[7])
    return None


def _written(end: End) -> str:
    """An address as the table has it: the four bytes as one number of this machine, in hexadecimal."""
    return f"{int.from_bytes(socket.inet_aton(end[0]), sys.byteorder):08X}:{end[1]:04X}"
