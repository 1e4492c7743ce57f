"""The device: the real firmware's core and main loop, driven by the calendar, with all that can befall a board: switch,
power, plug, watchdog, a machine that sleeps, Caps Lock, a report that is not taken, no memory."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from pmagent.contracts.pla import CONTRACT_VERSION
from pmagent.contracts.pla_schemas import CONTRACT_HASH
from pmagent.firmware.core import TICKS, Core
from pmagent.firmware.loop import CHUNK, Board, let_go, serve
from pmagent.replay.areas.pla.board import Hands, Pin, UsbLine, Watchdog
from pmagent.replay.areas.pla.witness import Witness
from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.faults import Faults
from pmagent.replay.simulation.world import World

DEVICE_ID: Final = "sim:device-1"
LOOP: Final = (0.008, 0.012)
"""Seconds between two looks at it while it types; fewer are needed while nothing happens."""
WATCHDOG_MICROS: Final = 8_000_000
ROUNDS_MAX: Final = 64
"""So many rounds of its loop are gone through at one moment, to take in what has arrived."""


class Firmware(Exception):
    """The firmware fails."""


class Device:
    """``hear`` takes bytes from the line; ``send`` brings them to it while ``connected`` says that a host holds it
    open, which a UART does not tell."""

    def __init__(self, world: World, faults: Faults, witness: Witness) -> None:
        self._world = world
        self._faults = faults
        self._random = world.chance.stream("pla: device")
        self._witness = witness
        self.send: Callable[[bytes], None] = lambda _: None
        self.connected: Callable[[], bool] = lambda: False
        self.left: Callable[[], None] = lambda: None
        """Called when it goes from the bus."""
        self.typing: Callable[[], None] = lambda: None
        """Called for each report that was taken."""
        self.plugged = True
        self.resting = False
        self.practice = faults.strike("device: is for practice")
        """Whether it says that it is for practice: then it types what names no layout."""
        self.on_uart = faults.strike("device: its line is a UART")
        """Then it cannot see who holds its line, nor the host whether it is there."""
        self._asleep = False
        self._moment = 0
        self._typed = False
        self._line = UsbLine(self._held_open)
        self._hands = Hands(self._take)
        self._watchdog = Watchdog(lambda: world.micros)
        self._switch, self._light = Pin(), Pin()
        parts: dict[str, Any] = {
            "switch": self._switch, "light": self._light, "line": self._line, "hands": self._hands,
            "watchdog": self._watchdog, "memory": bytearray(1),
        }  # fmt: skip
        self._board = Board(self._ticks, usb_connected=self._usb, **parts)
        self.boot("POWER_ON")

    # --- what befalls it ------------------------------------------------------------------------------------------

    @property
    def lit(self) -> bool:
        """Whether the light is on, which says that it is armed."""
        return self._light.value

    def boot(self, reason: str) -> None:
        """It begins anew and has forgotten everything but, unless its power was cut, that it was killed."""
        if reason == "POWER_ON":
            self._board.mark(killed=False)
        boot_id = f"{self._random.getrandbits(64):016x}"
        version, schemas = CONTRACT_VERSION, CONTRACT_HASH
        if self._faults.strike("device: another contract"):
            version, schemas = self._random.choice(((CONTRACT_VERSION, schemas[::-1]), ("2.0.0", schemas)))
        # Ticks begin so that they wrap within the run.
        self._first_tick = TICKS - self._random.randrange(1, 60_000) - self._world.micros // 1000
        self._core = Core(
            DEVICE_ID, boot_id, version, schemas, "1.0.0", reason, sha256=self._digest, practice=self.practice
        )
        self._line.arrived = self._line.written = b""
        self._light.value = False
        self._asleep = False
        self._watchdog.feed()
        self.plugged = True
        self._witness.powered(boot_id, cold=reason == "POWER_ON")
        self._later(between(self._random, *LOOP))

    def reset(self) -> None:
        """The watchdog resets it. Mostly the line is gone for a moment; behind a bridge it is not."""
        if not self.plugged:
            return
        if self._random.random() < 0.3:
            self.boot("WATCHDOG")
        else:
            self._off()
            self._world.later(between(self._random, 0.05, 1.0), "boots", lambda: self.boot("WATCHDOG"))

    def cut_power(self) -> None:
        """Unplugged; plugged in again a little later."""
        self._off()
        self._world.later(between(self._random, 0.2, 8.0), "plugged in", lambda: self.boot("POWER_ON"))

    def _off(self) -> None:
        self.plugged = False
        self._light.value = False
        self._moment += 1
        self._witness.powered("", cold=False)
        if not self.on_uart:
            self.left()

    def hit_switch(self) -> None:
        """Somebody hits the switch, or its wire breaks."""
        self._switch.value = True
        self._look()

    def close_switch(self) -> None:
        """The switch is closed again; that alone takes no kill away."""
        self._switch.value = False

    def sleep(self) -> None:
        """The machine suspends its ports for a while."""
        self._asleep = True
        self._world.later(between(self._random, 0.05, 5.0), "machine wakes", self._wake)

    def _wake(self) -> None:
        self._asleep = False

    def press_caps_lock(self) -> None:
        """Somebody at the machine presses Caps Lock."""
        self._hands.locked = not self._hands.locked

    def release_caps_lock(self) -> None:
        """Somebody at the machine sees to it that Caps Lock is off."""
        self._hands.locked = False

    def stop_reading(self) -> None:
        """The host does not read the line for a while."""
        self._line.stuck = True
        self._world.later(between(self._random, 0.5, 8.0), "host reads", self._read)

    def _read(self) -> None:
        self._line.stuck = False

    def repair(self) -> None:
        """Everything is as it should be again: the switch is closed, and the power was cut once."""
        self._switch.value = False
        self._asleep = self._hands.locked = self._line.stuck = False
        self.cut_power()

    # --- its main loop --------------------------------------------------------------------------------------------

    def hear(self, data: bytes) -> None:
        """Bytes arrive."""
        if self.plugged:
            self._line.arrived += data
            self._look()

    def _later(self, seconds: float) -> None:
        self._moment += 1
        moment = self._moment
        self._world.later(seconds, "device", lambda: self._look() if moment == self._moment else None)

    def _look(self) -> None:
        """Go through rounds of the main loop until nothing is left to be taken in; then look again in a while."""
        if self._is_off():
            return
        heard = bool(self._line.arrived)
        self._typed = False
        for _ in range(ROUNDS_MAX):
            if not self._round():
                break
        if self._line.written:
            data, self._line.written = self._line.written, b""
            self.send(data)
        if not (self.resting or self._is_off()):
            self._later(self._pause(heard=heard))

    def _is_off(self) -> bool:
        return not self.plugged

    def _pause(self, *, heard: bool) -> float:
        if self._faults.strike("device: its loop stalls"):
            return between(self._random, 0.2, 2.0)
        if self._typed:
            return between(self._random, *LOOP)
        return between(self._random, 0.05, 0.2) if heard or self.lit else between(self._random, 0.2, 0.4)

    def _round(self) -> bool:
        """One round, as ``pmagent.firmware.loop.run`` has them. Whether there is more to do at this moment."""
        line, written = self._line, len(self._line.written)
        try:
            killed = self._switch.value or self._board.killed_before()
            self._witness.sees(line.arrived[:CHUNK], killed=killed, connected=line.connected, usb=self._usb())
            serve(self._core, self._board)
        except Firmware:
            self._core.fail()
            let_go(self._board)
        self._witness.shines(led=self.lit)
        if self._world.micros - self._watchdog.fed_at > WATCHDOG_MICROS:
            self.reset()
        return self.plugged and (bool(line.arrived) or len(line.written) >= written + CHUNK)

    def _take(self, report: tuple[Any, ...]) -> str:
        """A report is handed to USB. Why it is not taken, "" when it is."""
        self._world.note(repr(report))
        if self._faults.strike("device: a report is not taken"):
            return self._random.choice(("USB", "MEMORY"))
        if report[0] != "release" and self._faults.strike("device: its firmware fails"):
            raise Firmware
        self._witness.reported(report)
        self._typed = True
        if report[0] != "release":
            self.typing()
        return ""

    def _held_open(self) -> bool:
        return self.on_uart or self.connected()

    def _usb(self) -> bool:
        return self.plugged and not self._asleep

    def _ticks(self) -> int:
        return (self._first_tick + self._world.micros // 1000) % TICKS

    def _digest(self, data: bytes) -> str:
        if self._faults.strike("device: no memory"):
            raise MemoryError
        return sha256(data).hexdigest()
