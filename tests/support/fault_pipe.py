"""A cable with faults: between the device's pseudo terminal and one of its own, which the host opens.

Both directions carry whole lines, each through a function that a test may replace: what it gives is what arrives. When
the host closes its end the device's is closed as well, and another terminal waits behind the link.
"""

from __future__ import annotations

import asyncio
import errno
import os
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Self

import anyio

from tests.support.pla_pty import Told

Fault = Callable[[bytes], bytes]
"""Takes a line with its newline; gives what of it arrives."""

READ = 4096


def passing(line: bytes) -> bytes:
    """No fault."""
    return line


class FaultPipe:
    """A cable from ``device`` to whoever opens ``path``. Used as a context; OSErrors but hang-ups are raised."""

    def __init__(self, device: Path, path: Path) -> None:
        self.path = path
        self.to_device: Fault = passing
        self.to_host: Fault = passing
        self.lines: dict[str, Told[bytes]] = {"to_device": Told(), "to_host": Told()}
        self._device = device
        self._loop = asyncio.get_running_loop()
        self._ends: tuple[int, int, int] | None = None
        self._begun = {"to_device": b"", "to_host": b""}

    def __enter__(self) -> Self:
        self._plug()
        return self

    def __exit__(self, *_: object) -> None:
        self._unplug()
        self.path.unlink(missing_ok=True)

    def inject(self, direction: str, data: bytes) -> None:
        """Bytes that nobody has said."""
        if self._ends is not None:
            self._write(self._ends[1] if direction == "to_device" else self._ends[0], data)

    def _plug(self) -> None:
        host, kept = os.openpty()  # ``kept`` open, no end of the host's hangs up; so it is closed when one comes
        tty.setraw(kept)
        device = os.open(self._device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        tty.setraw(device)
        os.set_blocking(host, False)
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(os.ttyname(kept))
        self._ends = host, device, kept
        self._loop.add_reader(host, self._carry, "to_device")
        self._loop.add_reader(device, self._carry, "to_host")

    def _unplug(self) -> None:
        ends, self._ends = self._ends, None
        if ends is not None:
            for end in ends[:2]:
                self._loop.remove_reader(end)
            for end in ends:
                if end >= 0:
                    os.close(end)

    def _carry(self, direction: str) -> None:
        assert self._ends is not None
        host, device, kept = self._ends
        if direction == "to_device" and kept >= 0:  # it has been opened, and speaks
            os.close(kept)
            self._ends = host, device, -1
        try:
            data = os.read(host if direction == "to_device" else device, READ)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            data = b""
        if not data:
            self._unplug()
            if direction == "to_device":
                self._plug()
            return
        *lines, self._begun[direction] = (self._begun[direction] + data).split(b"\n")
        fault = self.to_device if direction == "to_device" else self.to_host
        for line in lines:
            self.lines[direction].add(line)
            if self._ends is not None:
                self._write(device if direction == "to_device" else host, fault(line + b"\n"))

    def _write(self, end: int, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(end, data) :]
        except BlockingIOError:
            return  # nobody reads there: what does not fit is lost
        except OSError as error:
            if error.errno != errno.EIO:
                raise


class Later:
    """A fault that holds lines back until they are let go, and then gives them with the next."""

    def __init__(self, wanted: bytes) -> None:
        self._wanted = wanted
        self._held = b""
        self._holding = True
        self.caught = anyio.Event()

    def __call__(self, line: bytes) -> bytes:
        """The line now, or later."""
        if self._holding and self._wanted in line:
            self._held += line
            self.caught.set()
            return b""
        return line

    def let_go(self) -> bytes:
        """Let go what was held back."""
        self._holding = False
        held, self._held = self._held, b""
        return held


def first(wanted: bytes, fault: Fault) -> Fault:
    """``fault`` for the first line with ``wanted`` in it."""
    due = [True]

    def pass_on(line: bytes) -> bytes:
        if due[0] and wanted in line:
            due[0] = False
            return fault(line)
        return line

    return pass_on


def dropped(_: bytes) -> bytes:
    """Nothing of it arrives."""
    return b""


def doubled(line: bytes) -> bytes:
    """It arrives twice."""
    return line + line


def cut(line: bytes) -> bytes:
    """Half of it arrives, and no newline."""
    return line[: len(line) // 2]


def merged(line: bytes) -> bytes:
    """Its newline is lost, so the next one continues it."""
    return line[:-1]


def garbled(line: bytes) -> bytes:
    """One bit of it is flipped."""
    at = len(line) // 2
    return line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :]


def overlong(line: bytes) -> bytes:
    """Much stands before it."""
    return b"x" * 5000 + line


def noisy(line: bytes) -> bytes:
    """A modem manager looks for a modem, and bytes that are none of ours come along."""
    return b"AT\r\r\n" + b"\x00\xff\x7e~*0000\n" + line + b"\n\n+++\n"
