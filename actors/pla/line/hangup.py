"""Ending a line that another process holds: the device is made to see that its host has gone.

That is for a process that hangs, and cannot let go of the line itself. Nothing is written into the stream: the terminal
is hung up (baud rate 0, termios(3)), by which DTR falls; a device behind a pseudo terminal reads the rate instead. Over
a UART no device sees either; there its lease ends what it types.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from pmagent.actors.pla.line.discovery import WORKER, PortUnusable

_PIDFD_GETFD: Final = 438
_SPEEDS: Final = slice(4, 6)
"""Of what ``tcgetattr`` gives: the rates of both directions."""


def hang_up(path: str, holder: int) -> str:
    """Hang up the terminal at ``path``, which the process ``holder`` has open, and throw away what has not left it; the
    terminal's own name. Blocking, but waits for nobody. Raises PortUnusable."""
    if path.startswith(WORKER):
        raise PortUnusable("another", f"{path} is carried by a worker", "it lets go of the device within 2 s")
    try:
        device = os.stat(path).st_rdev
        theirs = next((number for number, found in _open_in(holder) if found == device), None)
        if theirs is None:
            raise PortUnusable("another", f"process {holder or '?'} does not hold {path}", _AT_THE_DEVICE)
        with _opened(path, holder, theirs) as descriptor:
            if os.fstat(descriptor).st_rdev != device:
                raise PortUnusable("another", f"{path} is another device by now", _AT_THE_DEVICE)
            _drop(descriptor)
    except (OSError, termios.error) as error:
        number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
        held = f"{path} is locked by the process that hangs, and only root gets past that"
        why = held if number == errno.EBUSY else f"{path}: {os.strerror(number) if number else 'it is no terminal'}"
        raise PortUnusable("denied", why, _AT_THE_DEVICE) from error
    return os.path.realpath(path)


_AT_THE_DEVICE: Final = "hit the switch on the device, or unplug it"


def _open_in(process: int) -> Iterator[tuple[int, int]]:
    """The descriptors of a process, each with the device that it leads to. Raises OSError."""
    folder = f"/proc/{process}/fd"
    for name in os.listdir(folder):
        with suppress(OSError):  # it was closed meanwhile
            yield int(name), os.stat(f"{folder}/{name}").st_rdev


@contextmanager
def _opened(path: str, holder: int, theirs: int) -> Iterator[int]:
    """The terminal, opened once more; where its holder keeps others out (TIOCEXCL), the holder's own descriptor, if the
    kernel lets us have it. Raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        try:
            descriptor = _taken_from(holder, theirs)
        except OSError:
            raise error from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _taken_from(holder: int, theirs: int) -> int:
    """A descriptor of ours for what ``theirs`` is in the process ``holder``: pidfd_getfd(2). Raises OSError."""
    process = os.pidfd_open(holder)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        taken: int = libc.syscall(_PIDFD_GETFD, process, theirs, 0)
        if taken < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return taken
    finally:
        os.close(process)


def _drop(descriptor: int) -> None:
    """Hang up. Raises OSError, termios.error."""
    termios.tcflush(descriptor, termios.TCOFLUSH)
    mode = termios.tcgetattr(descriptor)
    mode[_SPEEDS] = [termios.B0, termios.B0]
    termios.tcsetattr(descriptor, termios.TCSANOW, mode)
    with suppress(OSError):  # a pseudo terminal has none
        fcntl.ioctl(descriptor, termios.TIOCMBIC, struct.pack("I", termios.TIOCM_DTR))
