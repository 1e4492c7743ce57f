"""A terminal that shows what the practice device types, with keys for what befalls a device (docs/pla.md, Practice).

The device is a process of its own (``pmagent.pla.device``): the firmware's core behind a pseudo terminal. Here its
words become text that people read, and keys its commands.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pmagent.contracts.pla import KEYS, MODIFIERS
from pmagent.firmware.layout import MODIFIERS as BITS
from pmagent.firmware.layout import key as usage_of

KEYS_SHOWN: Final = "k hit the switch · c close it · u unplug, plug in · r reset · l Caps Lock · s sleep, wake · q quit"
QUIT: Final = "q"
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "k": ("kill",), "c": ("restore",), "u": ("unplug", "plug"), "r": ("reset",), "l": ("caps",),
    "s": ("suspend", "resume"),
}  # fmt: skip
"""Key -> the commands that it gives in turn."""
_SAID: Final = {
    "kill": "kill switch: hit. Nothing can be typed until it is closed and the device was unplugged",
    "restore": "the switch is closed. The kill stays until the device was unplugged",
    "unplug": "unplugged", "plug": "plugged in", "caps": "Caps Lock changed", "suspend": "the machine sleeps",
    "resume": "the machine is awake",
}  # fmt: skip
_END_SECONDS: Final = 5.0


class Shown:
    """The device's words (``pmagent.pla.device``) as what a person sees. ``write`` gets text as it comes; ``layout`` is
    the machine's."""

    def __init__(self, write: Callable[[str], None], layout: str) -> None:
        self._write = write
        self._layout = layout
        self._at_start = True

    def take(self, told: dict[str, Any]) -> None:
        """Show what the device tells."""
        if text := told.get("text"):
            self._write(text)
            self._at_start = text.endswith("\n")
        elif "light" in told:
            self.say("armed: its light is on" if told["light"] else "disarmed: its light is off")
        elif "line" in told:
            self.say("pmagent holds its line" if told["line"] == "open" else "nobody holds its line")
        elif "boot" in told:
            self.say(f"it has started ({told['reason']})")
        elif told.get("did") in _SAID:
            self.say(_SAID[told["did"]])
        elif report := told.get("report"):
            self._other(report)

    def say(self, text: str) -> None:
        """A line that is not typed text."""
        self._write(("" if self._at_start else "\n") + f"-- {text}\n")
        self._at_start = True

    def _other(self, report: list[Any]) -> None:
        """A report that types no character."""
        match report:
            case ["keyboard", int(modifiers), [_, *_] as usages] if modifiers & ~0x62:
                names = [name for name in MODIFIERS if modifiers & BITS[name]]
                names += [name for name in KEYS if usage_of(name, self._layout) in usages]
                self.say(f"keys: {'+'.join(names)}")
            case ["mouse", 0, int(x), int(y)] if x or y:
                self.say(f"move: {x} {y}")
            case ["mouse", int(button), _, _] if button:
                self.say(f"click: {({1: 'left', 2: 'right', 4: 'middle'}).get(button, button)}")


class Practice:
    """A practice device behind the link ``path``, of a machine with ``layout``, in a process of its own. Raises
    OSError."""

    def __init__(self, path: Path, layout: str) -> None:
        command = [sys.executable, "-I", "-m", "pmagent.pla.device", "--link", str(path), "--layout", layout]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._turn = dict.fromkeys(_WORDS, 0)
        self._begun = b""

    @property
    def output(self) -> int:
        """The descriptor on which ``told`` has something to read."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def told(self) -> list[dict[str, Any]] | None:
        """What it has told since; None when it has ended."""
        data = os.read(self.output, 65_536)
        if not data:
            return None
        *lines, self._begun = (self._begun + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def press(self, key: str) -> bool:
        """Do what a key says; whether it means anything."""
        words = _WORDS.get(key)
        if words is None:
            return False
        assert self._process.stdin is not None
        word = words[self._turn[key] % len(words)]
        self._turn[key] += 1
        self._process.stdin.write(f"{word}\n".encode())
        return True

    def close(self) -> None:
        """End it, as when its plug is pulled."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def practise(path: Path, layout: str, keyboard: int, write: Callable[[str], None]) -> None:
    """Show what the device types until ``q`` comes from the terminal ``keyboard``, or its end. Raises OSError,
    termios.error."""
    device = Practice(path, layout)
    shown = Shown(write, layout)
    try:
        with _keys(keyboard):
            while True:
                ready, _, _ = select.select([keyboard, device.output], [], [])
                if device.output in ready:
                    told = device.told()
                    if told is None:
                        return
                    for one in told:
                        shown.take(one)
                if keyboard in ready:
                    for key in os.read(keyboard, 64).decode("ascii", "replace") or QUIT:
                        if key == QUIT:
                            return
                        if not device.press(key):
                            shown.say(KEYS_SHOWN)
    finally:
        device.close()


@contextmanager
def _keys(terminal: int) -> Iterator[None]:
    """Each key is read as it is pressed, and not shown."""
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
