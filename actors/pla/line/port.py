"""A serial port, open: bytes in and out, and its end. The one place that knows pyserial and pyserial-asyncio.

It closes what they leave open: the terminal is set raw whatever it was; a second opener is kept out; nothing waits
for a device that does not read, not even closing; DTR falls when this process ends, however it ends. A pseudo terminal
has no DTR: there the other side sees that nobody holds it.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import termios
import threading
import tty
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import anyio
import anyio.to_thread
import serial
from serial_asyncio import SerialTransport

from pmagent.actors.pla.line.discovery import PortUnusable

RECEIVED_MAX: Final = 64 * 1024
"""More bytes than that are not kept for whoever does not come to take them."""
CLOSE_SECONDS: Final = 1.0
_BAUD: Final = 115_200  # means nothing to USB, and all to a real serial line

_TAKEN: Final = frozenset((errno.EBUSY, errno.EAGAIN, errno.EWOULDBLOCK))
_MISSING: Final = frozenset((errno.ENOENT, errno.ENXIO, errno.ENODEV, errno.ENOTDIR))
_DENIED: Final = frozenset((errno.EACCES, errno.EPERM, errno.EROFS))


async def open_port(path: str, wake: Callable[[], None]) -> Port:
    """Open the port for this process alone. ``wake`` is called on the event loop when bytes have come, when it takes
    bytes again, and at its end. Raises PortUnusable."""
    raw = await anyio.to_thread.run_sync(_opened, path)
    port = Port(path, wake, raw)
    try:
        port.begin(_Transport(asyncio.get_running_loop(), port, raw))
        # The transport's own settings come first; then what has come before they held is thrown away.
        _set_up(raw.fileno())
        raw.reset_input_buffer()
    except (OSError, termios.error) as error:
        await port.close()
        raise _unusable(path, error) from error
    return port


class _Serial(serial.Serial):
    """A port of pyserial that waits for nobody: the transport flushes and closes it on the event loop, and with a
    device that does not read either may take half a minute, or for ever."""

    def flush(self) -> None:
        """Discard unsent bytes (``Port.close``)."""

    def close(self) -> None:
        """Nothing yet; see ``let_go``."""

    def let_go(self) -> None:
        """Close it. May wait for the device."""
        super().close()


class _Transport(SerialTransport):  # type: ignore[misc]  # no types
    """A transport to which a device that is unplugged while something is written is no bug of ours: ``connection_lost``
    is told, as of any other end, and no traceback is."""

    def _fatal_error(self, exc: Exception, message: str = "") -> None:
        del message
        self._abort(exc)


class Port(asyncio.Protocol):
    """An open port; ``open_port`` makes one."""

    def __init__(self, path: str, wake: Callable[[], None], raw: _Serial) -> None:
        self.path = path
        self._wake = wake
        self._raw = raw
        self._transport: SerialTransport | None = None
        self._received = bytearray()
        self._clear = True
        self._closed = asyncio.Event()
        self.ended = False
        """Whether the port is gone: unplugged, or closed here."""

    def begin(self, transport: SerialTransport) -> None:
        """It is open."""
        self._transport = transport
        transport.set_write_buffer_limits(high=0)

    def take(self) -> bytes:
        """The bytes that have come."""
        taken = bytes(self._received)
        self._received.clear()
        return taken

    @property
    def is_clear(self) -> bool:
        """Whether all that was written has left: then more may be written."""
        return self._clear and not self.ended

    def write(self, data: bytes) -> None:
        """Write; to be called when ``is_clear``."""
        assert self._transport is not None, "open"
        self._transport.write(data)

    async def close(self) -> None:
        """Close it; what has not left is thrown away, also what the kernel holds: what was meant for now must not
        arrive later. A device that keeps the closing waiting is not waited for longer than ``CLOSE_SECONDS``."""
        with suppress(OSError, termios.error):  # it was unplugged: there is nothing left to throw away
            self._raw.reset_output_buffer()
        with anyio.move_on_after(CLOSE_SECONDS):
            if self._transport is not None:
                if not self._transport.is_closing():
                    self._transport.abort()
                await self._closed.wait()
        await _in_background(self._raw.let_go)

    # --- asyncio.Protocol -------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._received += data[: RECEIVED_MAX - len(self._received)]
        self._wake()

    def pause_writing(self) -> None:
        """See asyncio."""
        self._clear = False

    def resume_writing(self) -> None:
        """See asyncio."""
        self._clear = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio. The transport closes the port right after this."""
        del exc  # whatever it says: the port is gone
        self.ended = True
        self._closed.set()
        self._wake()


def _opened(path: str) -> _Serial:
    """In a thread: opening may wait for the device. Raises PortUnusable."""
    try:
        raw = _Serial(path, _BAUD, timeout=0, write_timeout=0, exclusive=True)
    except (OSError, termios.error, ValueError) as error:
        raise _unusable(path, error) from error
    try:
        if not _is_pseudo(raw.fileno()):
            # Those who do not ask for the lock are kept out too (but for root). On a pseudo terminal this would outlive
            # a process that is killed, as long as the other side lives.
            fcntl.ioctl(raw.fileno(), termios.TIOCEXCL)
    except (OSError, termios.error) as error:
        raw.let_go()
        raise _unusable(path, error) from error
    return raw


async def _in_background(close: Callable[[], None]) -> None:
    """Call it in a thread that may outlive the event loop, and does not keep the process; wait for it a while."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            close()
        finally:
            with suppress(RuntimeError):  # the event loop has ended meanwhile
                loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, daemon=True).start()
    with anyio.move_on_after(CLOSE_SECONDS):
        await done.wait()


def _set_up(descriptor: int) -> None:
    """Raw, and DTR falls with the last to hold it. Raises OSError, termios.error."""
    tty.setraw(descriptor, termios.TCSANOW)
    mode = termios.tcgetattr(descriptor)
    mode[2] |= termios.HUPCL | termios.CLOCAL
    termios.tcsetattr(descriptor, termios.TCSANOW, mode)


def _is_pseudo(descriptor: int) -> bool:
    return os.ttyname(descriptor).startswith("/dev/pts/")


def _unusable(path: str, error: Exception) -> PortUnusable:
    number = getattr(error, "errno", None)
    if number is None and error.args and isinstance(error.args[0], int):
        number = error.args[0]  # termios.error
    if number in _TAKEN:
        return PortUnusable("taken", f"{path} is held by another program", "end that program (fuser names it), or wait")
    if number in _MISSING:
        return PortUnusable("missing", f"there is no device at {path}", "plug it in, or correct pla.device")
    if number in _DENIED:
        return PortUnusable("denied", f"{path} may not be opened", "see firmware/README.md for the udev rule")
    why = os.strerror(number) if number else "this is no serial port"
    return PortUnusable(
        "failed", f"{path} cannot be opened: {why}", "correct pla.device; unplug the device and plug it in"
    )
