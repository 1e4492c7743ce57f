"""A board without a board: the modules that CircuitPython has, around a switch, a line, a machine and a clock that a
test holds. ``adafruit_hid`` is the real one."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import pmagent.firmware
from tests.support.board_uart import Uart

TICKS = 1 << 29
OURS = ("firmware.code", "firmware.boot", "firmware.safemode", "firmware.hands", "firmware.loop", "firmware.uart")
"""The modules that each start imports anew, as the board names them: there the folder is a package of its own."""
FILES = [path.stem for path in Path(pmagent.firmware.__file__).parent.glob("*.py")]
PURE = [name for name in FILES if f"firmware.{name}" not in OURS]


class Pin:
    """A digitalio.DigitalInOut. As an output it keeps what it was set to, in order."""

    def __init__(self, board: FakeBoard, name: str) -> None:
        self._board, self._name = board, name
        self.history: list[bool] = []
        board.pins[name] = self
        self.pull: object = None

    def switch_to_output(self, value: bool = False) -> None:
        self.value = value

    def switch_to_input(self, pull: object = None) -> None:
        self.pull = pull

    def deinit(self) -> None:
        del self._board.pins[self._name]

    @property
    def value(self) -> bool:
        if self._name == "GP14" and self._board.watchdog.mode is not None:
            self._board.begin_round()
        return self.history[-1] if self.history else self._board.inputs[self._name]()

    @value.setter
    def value(self, value: bool) -> None:
        self.history.append(value)


class Line:
    """usb_cdc.data: what the host writes is in ``incoming``; what it has read, in ``sent``."""

    def __init__(self) -> None:
        self.incoming = bytearray()
        self.sent = bytearray()
        self.kept = bytearray()
        self.reads = True
        self.connected = True
        self.timeout: float | None = None
        self.write_timeout: float | None = None

    @property
    def in_waiting(self) -> int:
        return len(self.incoming)

    @property
    def out_waiting(self) -> int:
        return len(self.kept)

    def read(self, size: int = -1) -> bytes:
        assert self.timeout == 0, "it would wait for ever"
        taken = bytes(self.incoming[:size])
        del self.incoming[:size]
        return taken

    def write(self, data: bytes) -> int:
        assert self.write_timeout == 0, "it would wait for ever"
        assert len(self.kept) + len(data) <= 256, "more than the board holds"
        (self.sent if self.reads else self.kept).extend(data)
        return len(data)


class Device:
    """usb_hid.Device: what arrives at the machine is in the board's ``reports``."""

    def __init__(self, board: FakeBoard, usage: int) -> None:
        self._board = board
        self.usage_page, self.usage = 1, usage

    def send_report(self, report: bytearray) -> None:
        self._board.on_report()
        self._board.reports.append((self.usage, bytes(report)))

    def get_last_received_report(self) -> bytes | None:
        return bytes([2 if self._board.caps_lock else 0])


class FakeBoard:
    """Everything around the program; ``each_round`` is called with the number of the round, when the switch is read
    while the watchdog runs. ``setting``: what settings.toml says of the line, ``boot_keyboard`` of that, if it says
    anything. ``fifo``: what a UART takes without waiting. ``spoil`` is done to the board's modules, by name, before a
    program sees them; a module that it makes None is missing."""

    def __init__(
        self, reset_reason: str = "POWER_ON", memory: bytearray | None = None, *, console: bool = False,
        setting: str | None = None, fifo: int = 32, boot_keyboard: str | None = None,
    ) -> None:  # fmt: skip
        self.now = TICKS - 500
        self.round_ms = 4
        self.rounds = 0
        self.each_round: Callable[[int], None] = lambda _: None
        self.on_report: Callable[[], None] = lambda: None
        self.spoil: Callable[[dict[str, Any]], None] = lambda _: None
        self.slept: list[float] = []
        self.usages = [6, 2]
        self.pins: dict[str, Pin] = {}
        self.inputs: dict[str, Callable[[], bool]] = {"GP14": lambda: False, "GP15": lambda: True}
        self.setting, self.fifo, self.boot_keyboard = setting, fifo, boot_keyboard
        self.line: Line | None = Line() if setting in (None, "usb") else None
        self.uart: Uart | None = None
        self.reports: list[tuple[int, bytes]] = []
        self.caps_lock = False
        self.usb_connected = True
        self.fed: list[int] = []
        self.memory = bytearray(8) if memory is None else memory
        self.did: list[str] = []
        self.console = object() if console else None
        self.watchdog = SimpleNamespace(timeout=None, mode=None, feed=lambda: self.fed.append(self.rounds))
        self.runtime = SimpleNamespace(autoreload=True)
        self.reset_reason = f"microcontroller.ResetReason.{reset_reason}"
        self.run_reason = "supervisor.RunReason.STARTUP"

    def begin_round(self) -> None:
        """Each round takes ``round_ms``."""
        self.each_round(self.rounds)
        self.rounds += 1
        self.let_pass(self.round_ms)

    def let_pass(self, milliseconds: int) -> None:
        """So much time goes by."""
        self.now = (self.now + milliseconds) % TICKS
        if self.uart is not None:
            self.uart.let_pass(milliseconds)

    def sleep(self, seconds: float) -> None:
        """``time.sleep`` of a program; the light is on or off meanwhile."""
        lit = any(pin.history and pin.history[-1] for pin in self.pins.values())
        self.slept.append(seconds if lit else -seconds)
        self.let_pass(round(seconds * 1000))

    @property
    def flashes(self) -> list[int]:
        """How often the light flashed between two pauses."""
        counts, now = [], 0
        for seconds in self.slept:
            if seconds <= -1:
                counts.append(now)
                now = 0
            now += seconds > 0
        return counts

    def _open_uart(self, *pins: str, **named: Any) -> Uart:
        assert self.uart is None, "in use"
        self.uart = Uart(self.let_pass, self.fifo, *pins, **named)
        return self.uart

    def modules(self) -> dict[str, ModuleType]:
        """The modules that may be imported on the board."""
        board = self

        class Runtime:
            @property
            def usb_connected(self) -> bool:
                return board.usb_connected

            @property
            def run_reason(self) -> str:
                return board.run_reason

            def __setattr__(self, name: str, value: object) -> None:
                setattr(board.runtime, name, value)

        def did(what: str) -> Callable[..., None]:
            return lambda *words, **named: self.did.append(f"{what}{words or ''}{named or ''}")

        device = type("Device", (Device,), {"KEYBOARD": "keyboard", "MOUSE": "mouse"})
        contents: dict[str, dict[str, Any]] = {
            "board": {name: name for name in ("GP0", "GP1", "GP2", "GP14", "GP15")},
            "busio": {"UART": self._open_uart},
            "digitalio": {"DigitalInOut": lambda name: Pin(self, name), "Pull": SimpleNamespace(UP="up")},
            "microcontroller": {
                "watchdog": self.watchdog,
                "nvm": self.memory,
                "reset": did("reset"),
                "cpu": SimpleNamespace(uid=bytearray(range(8)), reset_reason=self.reset_reason),
            },
            "supervisor": {
                "ticks_ms": lambda: self.now,
                "runtime": Runtime(),
                "set_usb_identification": did("identify"),
            },
            "usb_cdc": {"data": self.line, "console": self.console, "enable": did("cdc")},
            "usb_hid": {
                "devices": tuple(device(self, usage) for usage in self.usages), "Device": device, "enable": did("hid"),
                "disable": did("no hid"),
            },
            "usb_midi": {"disable": did("no midi")},
            "storage": {"disable_usb_drive": did("no drive")},
            "watchdog": {"WatchDogMode": SimpleNamespace(RESET="reset")},
            "micropython": {"const": lambda number: number},
        }
        found = {}
        for name, content in contents.items():
            found[name] = ModuleType(name)
            vars(found[name]).update(content)
        return found

    @contextmanager
    def program(self, name: str = "code") -> Iterator[Any]:
        """The board's ``code`` or ``boot``, imported on this board."""
        before = dict(sys.modules)
        stale = [module for module in before if module in OURS or module.split(".")[0] == "adafruit_hid"]
        try:
            for module in stale:
                del sys.modules[module]
            modules: dict[str, Any] = dict(self.modules())
            modules["firmware"] = pmagent.firmware
            for pure in PURE:
                modules[f"firmware.{pure}"] = importlib.import_module(f"pmagent.firmware.{pure}")
            self.spoil(modules)
            sys.modules.update(modules)
            said = {"PMAGENT_LINE": self.setting, "PMAGENT_BOOT_KEYBOARD": self.boot_keyboard}
            settings = {name: value for name, value in said.items() if value is not None}
            with mock.patch.dict(os.environ, settings):
                program: Any = importlib.import_module(f"firmware.{name}")
                if name == "code":
                    program.time = SimpleNamespace(sleep=self.sleep)
                yield program
        finally:
            sys.modules.clear()
            sys.modules.update(before)

    def boot(self) -> None:
        """Power it on: it has what CircuitPython shows by itself, until boot.py says otherwise. boot.py that is not
        even read changes nothing."""
        self.console, self.line, self.usages = object(), None, [6, 2, 1]
        with contextlib.suppress(ImportError), self.program("boot") as boot:
            boot.main()
        if any(did.startswith("hid") for did in self.did):
            self.usages = [6] if any("boot_device" in did for did in self.did) else [6, 2]
        if "no hid" in self.did:
            self.usages = []
        for did in self.did:
            if did.startswith("cdc"):
                self.console = object() if "'console': True" in did else None
                self.line = Line() if "'data': True" in did else None

    def run(self, rounds: int) -> None:
        """Start the program, for so many rounds."""
        with self.program() as code:
            code.main(rounds)

    @property
    def keys(self) -> list[bytes]:
        """The reports of the keyboard."""
        return [report for usage, report in self.reports if usage == 6]
