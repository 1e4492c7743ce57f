"""A device to try things with: the firmware's own core behind a pseudo terminal, in a process of its own.

    python -I -m pmagent.pla.device --link PATH [--typed FILE]

``PATH`` becomes a link to the terminal; whatever opens it holds the line, as DTR tells a real device. Text that is
"typed" goes nowhere but to ``FILE``, and to stdout, where each thing that happens is a line of JSON with ``at``
(nanoseconds of CLOCK_MONOTONIC).

Commands come on stdin, one word a line, and are told on stdout when they are done:

| word | what happens |
|---|---|
| ``kill``, ``restore`` | the kill switch opens; closes again, which changes nothing until power-on |
| ``reset`` | another boot on the same terminal: nothing is remembered but a kill |
| ``unplug``, ``plug`` | the terminal is gone; another boot, on another terminal behind the same link |
| ``suspend``, ``resume`` | the machine takes no reports; takes them again |
| ``caps`` | the machine's Caps Lock changes |
| ``mute``, ``deaf`` | nothing is said; nothing is read. ``well`` ends both |
| ``mark`` | nothing: what is told before it is all that has happened |
| ``swallow`` | the answer to the next commit, and what is said unasked within it, is lost |

The end of stdin, SIGTERM, or Ctrl-C is the end of the device.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import select
import signal
import sys
import termios
import time
import tty
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final

from pmagent.firmware.contract import CONTRACT_HASH, CONTRACT_VERSION
from pmagent.firmware.core import FIRMWARE_VERSION, TICKS, Core
from pmagent.firmware.layouts import LAYOUTS
from pmagent.pla.lossy_line import LossyLine
from pmagent.pla.typed import Screen

ROOM: Final = 1024
"""So many bytes the line takes at once."""
BUSY_MS: Final = 2
IDLE_MS: Final = 20
_CHUNK: Final = 4096
_OUTPUT_SPEED: Final = 5  # of what tcgetattr gives
_STDIN, _STDOUT = 0, 1
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)


class Terminal:
    """A pseudo terminal behind the link ``path``; open while somebody else has it open. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.master, end = os.openpty()
        try:
            tty.setraw(end)
            self.name = os.ttyname(end)
        finally:
            os.close(end)
        os.set_blocking(self.master, False)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.unlink(missing_ok=True)
        beside.symlink_to(self.name)
        beside.replace(path)
        self._rest = b""

    def close(self) -> None:
        """Take it away, as when the plug is pulled."""
        self._path.unlink(missing_ok=True)
        os.close(self.master)

    def is_open(self) -> bool:
        """Whether somebody holds the line, and has not hung it up (baud rate 0: on a serial port DTR falls with it)."""
        poll = select.poll()
        poll.register(self.master, 0)
        held = not any(events & select.POLLHUP for _, events in poll.poll(0))
        return held and termios.tcgetattr(self.master)[_OUTPUT_SPEED] != termios.B0

    def read(self) -> bytes:
        """The bytes that have arrived."""
        try:
            return os.read(self.master, _CHUNK)
        except BlockingIOError:
            return b""
        except OSError as error:
            if error.errno != errno.EIO:  # nobody holds the line
                raise
            return b""

    @property
    def room(self) -> int:
        """So many bytes may be written."""
        self._write(b"")
        return 0 if self._rest else ROOM

    def send(self, data: bytes) -> None:
        """Write, without waiting; what does not fit is kept, and makes ``room`` none."""
        self._write(data)

    def forget(self) -> None:
        """Nobody is there to read."""
        self._rest = b""

    def _write(self, data: bytes) -> None:
        self._rest += data
        try:
            while self._rest:
                self._rest = self._rest[os.write(self.master, self._rest) :]
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self._rest = b""


class PretendDevice:
    """The device on the terminal behind ``path``. ``identity``: device id, contract version and hash. ``reports``:
    where events go; ``typed``: where the text goes, None for nowhere; ``layout``: of the machine that takes its
    reports; ``practice``: whether it says that it is for practice."""

    def __init__(
        self, path: Path, identity: tuple[str, str, str], reports: BinaryIO, typed: BinaryIO | None,
        layout: str = "us", *, practice: bool = True,
    ) -> None:  # fmt: skip
        self._layout, self._practice = layout, practice
        self._path = path
        self._identity = identity
        self._out = reports
        self._typed = typed
        self._switch_open = self._killed = self._caps_lock = self._mute = self._deaf = False
        self._usb = True
        self._was_open = self._led = False
        self._terminal: Terminal | None = None
        self._boot("POWER_ON")
        self._plug()

    def run(self, control: int) -> None:
        """Live until the end of ``control``. Raises OSError."""
        os.set_blocking(control, False)
        begun = b""
        wait = BUSY_MS
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
            while True:
                if self._wait(control, wait):
                    data = os.read(control, _CHUNK)
                    if not data:
                        return
                    *words, begun = (begun + data).split(b"\n")
                    for word in words:
                        self.obey(word.decode("ascii", "replace").strip())
                wait = BUSY_MS if self._step() else IDLE_MS
        finally:
            if self._terminal is not None:
                self._terminal.close()

    def obey(self, word: str) -> None:
        """Do what a command says."""
        done = getattr(self, f"_do_{word}", None) if word.isalpha() else None
        if done is None:
            self._tell(unknown=word[:40])
            return
        done()
        self._tell(did=word)

    # --- commands ---------------------------------------------------------------------------------------------------

    def _do_kill(self) -> None:
        self._switch_open = self._killed = True  # nothing is told to be done that the device might not have seen

    def _do_restore(self) -> None:
        self._switch_open = False

    def _do_reset(self) -> None:
        self._boot("WATCHDOG")

    def _do_unplug(self) -> None:
        if self._terminal is not None:
            self._terminal.close()
            self._terminal = None
            self._line(open=False)

    def _do_plug(self) -> None:
        if self._terminal is None:
            self._boot("POWER_ON")
            self._plug()

    def _do_suspend(self) -> None:
        self._usb = False

    def _do_resume(self) -> None:
        self._usb = True

    def _do_caps(self) -> None:
        self._caps_lock = not self._caps_lock

    def _do_mute(self) -> None:
        self._mute = True

    def _do_deaf(self) -> None:
        self._deaf = True

    def _do_well(self) -> None:
        self._mute = self._deaf = False

    def _do_mark(self) -> None:
        """Nothing."""

    def _do_swallow(self) -> None:
        self._swallower.swallow()

    # --- life -------------------------------------------------------------------------------------------------------

    def _boot(self, reason: str) -> None:
        device_id, version, schemas = self._identity
        self._boot_id = os.urandom(8).hex()
        self._killed = self._killed and reason != "POWER_ON"  # the board writes it down
        self._core = Core(
            device_id, self._boot_id, version, schemas, FIRMWARE_VERSION, reason,
            sha256=lambda data: sha256(data).hexdigest(), practice=self._practice,
        )  # fmt: skip
        self._screen = Screen(self._layout)
        self._swallower = LossyLine()
        self._tell(boot=self._boot_id, reason=reason)

    def _plug(self) -> None:
        self._terminal = Terminal(self._path)
        self._tell(plugged=str(self._path), terminal=self._terminal.name)

    def _wait(self, control: int, milliseconds: int) -> bool:
        """Wait for something to do; whether a command has come."""
        poll = select.poll()
        poll.register(control, select.POLLIN)
        if self._terminal is not None and self._was_open and not self._deaf:
            poll.register(self._terminal.master, select.POLLIN)
        return any(number == control for number, _ in poll.poll(milliseconds))

    def _step(self) -> bool:
        """One round of the core; whether another is due at once."""
        terminal = self._terminal
        opened = terminal is not None and terminal.is_open()
        received = terminal.read() if terminal is not None and not self._deaf else b""
        if not opened:  # what comes over a line that nobody holds is read, and not heard
            opened = terminal is not None and terminal.is_open()
            received = received if opened else b""
        self._line(open=opened)
        for op in self._swallower.hear(received):
            self._tell(heard=op)
        step = self._core.step(
            time.monotonic_ns() // 1_000_000 % TICKS,
            received,
            killed=self._switch_open or self._killed,
            dtr=opened,
            usb=self._usb and terminal is not None,
            caps_lock=self._caps_lock,
            room=terminal.room if terminal is not None else 0,
        )
        self._killed = self._core.killed
        for report in step.reports:
            self._report(report)
            self._core.reported(ok=True)
        if step.led != self._led:
            self._led = step.led
            self._tell(light=step.led)
        sent = self._swallower.say(step.send)
        if terminal is not None and opened and not self._mute:
            terminal.send(sent)
        return bool(step.reports or received or step.led)

    def _line(self, *, open: bool) -> None:  # noqa: A002 - the word for it
        if open == self._was_open:
            return
        self._was_open = open
        if not open and self._terminal is not None:
            self._terminal.forget()
        self._tell(line="open" if open else "closed")

    def _report(self, report: tuple[Any, ...]) -> None:
        """The machine takes a report."""
        text = ""
        if report[0] == "keyboard":
            text = self._screen.take(report[1], report[2])
        elif report[0] == "release":
            self._screen.release()
        if text and self._typed is not None:
            self._typed.write(text.encode())
            self._typed.flush()
        self._tell(report=report, text=text)

    def _tell(self, **what: Any) -> None:
        line = json.dumps({"at": time.monotonic_ns(), **what}, separators=(",", ":"))
        self._out.write(line.encode() + b"\n")
        self._out.flush()


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m pmagent.pla.device", description=__doc__.partition("\n")[0])
    parser.add_argument("--link", type=Path, required=True, help="becomes a link to the terminal")
    parser.add_argument("--typed", type=Path, help="the text that is typed goes there")
    parser.add_argument("--device-id", default="pretend-device", help="by which it is known")
    parser.add_argument("--contract-version", default=CONTRACT_VERSION, help="what it says of its contract")
    parser.add_argument("--contract-hash", default=CONTRACT_HASH, help="what it says of its schemas")
    parser.add_argument("--layout", choices=sorted(LAYOUTS), default="us", help="of the machine that it types on")
    parser.add_argument("--board", action="store_true", help="as a board: it types only what names a layout")
    asked = parser.parse_args()
    typed = asked.typed.open("ab") if asked.typed is not None else None
    identity = asked.device_id, asked.contract_version, asked.contract_hash
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # until there is somebody to take the terminal away
    for number in _ENDING:
        signal.signal(number, lambda *_: sys.exit(0))
    with open(_STDOUT, "wb", closefd=False) as reports:
        PretendDevice(
            asked.link, identity, reports, typed, asked.layout, practice=not asked.board
        ).run(_STDIN)


if __name__ == "__main__":
    main()
