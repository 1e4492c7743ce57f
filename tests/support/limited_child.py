"""A module to be run within limits: does what its request says, and misbehaves when told to."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from pathlib import Path

WAITING = "waiting"
_PR_SET_NAME = 15


def _echo(text: str) -> None:
    sys.stdout.write(text[::-1])


def _loop(_: str) -> None:
    while True:
        pass


def _wait(_: str) -> None:
    """Says no more, and can be seen to wait by its name."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, WAITING.encode(), 0, 0, 0)
    sys.stdout.close()
    os.close(1)
    signal.pause()


def _grow(_: str) -> None:
    kept = []
    while True:
        kept.append(bytearray(2**24))


def _talk(_: str) -> None:
    while True:
        sys.stdout.write("x" * 65_536)


def _fall(_: str) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _write(path: str) -> None:
    try:
        Path(path).write_text("written")
    except OSError as error:
        sys.stdout.write(type(error).__name__)


def _read(path: str) -> None:
    try:
        sys.stdout.write(Path(path).read_text())
    except OSError as error:
        sys.stdout.write(type(error).__name__)


def _connect(port: str) -> None:
    try:
        socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()
    except OSError as error:
        sys.stdout.write(type(error).__name__)


def _environment(_: str) -> None:
    sys.stdout.write(" ".join(sorted(os.environ)))


def _identity(_: str) -> None:
    sys.stderr.write("@1\n@2\n")
    sys.stdout.write(str(os.getpid()))


_WHAT = {
    "echo": _echo, "loop": _loop, "wait": _wait, "grow": _grow, "talk": _talk, "fall": _fall, "write": _write,
    "read": _read, "connect": _connect, "environment": _environment, "identity": _identity,
}  # fmt: skip

if __name__ == "__main__":
    what, _, rest = sys.stdin.read().partition(" ")
    _WHAT[what](rest)
