"""Program: go into a network namespace, listen there, and hand the listening socket back.

It is a process of its own because the kernel lets only one of a single thread into a user namespace; it runs alone,
without the project around it, and imports the standard library only. As root it enters the network namespace at once,
as an ordinary user by way of the user namespace that owns it: whoever made that may do anything in it.

Arguments: the descriptors of the namespace and of a unix socket to answer on, and the port. The answer is the socket,
or a word why there is none. ``same`` is for the caller too.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import sys
from typing import Final

_BACKLOG: Final = 256
"""Connections that wait to be taken; the next ones try again, a second later and more."""
_NETWORK: Final = 0x40000000  # CLONE_NEWNET
_USER: Final = 0x10000000  # CLONE_NEWUSER
_OWNER: Final = 0xB701  # NS_GET_USERNS, linux/nsfs.h
_FREEBIND: Final = 15  # IP_FREEBIND, linux/in.h: the loopback in there may not be up yet


def same(namespace: int) -> bool:
    """Whether this process is in the network namespace with this descriptor."""
    ours, theirs = os.stat("/proc/self/ns/net"), os.fstat(namespace)
    return (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)


def _enter(namespace: int) -> None:
    try:
        _setns(namespace, _NETWORK)
    except PermissionError:
        _setns(fcntl.ioctl(namespace, _OWNER), _USER)
        _setns(namespace, _NETWORK)
    if not same(namespace):
        raise OSError(0, "the way in led elsewhere")


def _setns(descriptor: int, kind: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, kind):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _main(namespace: int, channel: int, port: int) -> None:
    with socket.socket(fileno=channel) as back:
        try:
            _enter(namespace)
            with socket.socket() as listener:
                listener.setsockopt(socket.SOL_IP, _FREEBIND, 1)
                listener.bind(("127.0.0.1", port))
                listener.listen(_BACKLOG)
                socket.send_fds(back, [b"listening"], [listener.fileno()])
        except OSError as error:
            back.send(f"{error.strerror}".encode())


if __name__ == "__main__":
    _main(*map(int, sys.argv[1:4]))
