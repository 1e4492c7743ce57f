"""The device: the real firmware's core, driven by the calendar as its main loop drives it, with all that can befall a
board: switch, power, plug, watchdog, a machine that sleeps, Caps Lock, a report that is not taken, no memory."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from random import Random
from typing import Any, Final

from contracts.pla import CONTRACT_VERSION
from contracts.pla_schemas import CONTRACT_HASH
from firmware.core import TICKS, Core
from replay.simulation.faults import Faults
from replay.simulation.pla.witness import Witness
from replay.simulation.world import World

DEVICE_ID: Final = "sim:device-1"
LOOP: Final = (0.008, 0.012)
"""Seconds between two rounds of the main loop while it types; it is looked at less often when nothing happens."""


class Device:
    """``hear`` takes bytes from the line; ``send`` brings them to it while ``connected`` says that a host holds it
    open."""

    def __init__(self, world: World, faults: Faults, random: Random, witness: Witness) -> None:
        self._world = world
        self._faults = faults
        self._random = random
        self._witness = witness
        self.send: Callable[[bytes], None] = lambda _: None
        self.connected: Callable[[], bool] = lambda: False
        self.left: Callable[[], None] = lambda: None
        """Called when it goes from the bus."""
        self.typing: Callable[[], None] = lambda: None
        """Called for each report that was taken."""
        self.plugged = True
        self.switch_closed = True
        self.resting = False
        self._asleep = False
        self._caps_lock = False
        self._unread = False
        self._received = b""
        self._round = 0
        self._boots = 0
        self.lit = False
        self.boot("power on", cold=True)

    # --- what befalls it ------------------------------------------------------------------------------------------

    def boot(self, reason: str, *, cold: bool) -> None:
        """It begins anew and has forgotten everything; ``cold``: its power was cut."""
        self._boots += 1
        boot_id = f"{self._random.getrandbits(64):016x}"
        version, schemas = CONTRACT_VERSION, CONTRACT_HASH
        if self._faults.strike("device: another contract"):
            version, schemas = self._random.choice(((CONTRACT_VERSION, schemas[::-1]), ("2.0.0", schemas)))
        # Ticks begin so that they wrap within the run.
        self._ticks = TICKS - self._random.randrange(1, 60_000) - self._world.micros // 1000
        self._core = Core(DEVICE_ID, boot_id, version, schemas, "1.0.0", reason, sha256=self._digest)
        self._received = b""
        self._asleep = False
        self._witness.powered(boot_id, cold=cold)
        self._awake()

    def reset(self) -> None:
        """The watchdog resets it. Mostly the line is gone for a moment; behind a bridge it is not."""
        if not self.plugged:
            return
        if self._random.random() < 0.3:
            self.boot("watchdog", cold=False)
        else:
            self._again("watchdog", cold=False)

    def cut_power(self) -> None:
        """Unplugged; plugged in again a little later."""
        self._off()
        self._world.later(self._between(0.2, 8.0), "plugged in", lambda: self._booted("power on", cold=True))

    def _again(self, reason: str, *, cold: bool) -> None:
        self._off()
        self._world.later(self._between(0.05, 1.0), "boots", lambda: self._booted(reason, cold=cold))

    def _off(self) -> None:
        self.plugged = False
        self.lit = False
        self._round += 1
        self._witness.powered("", cold=False)
        self.left()

    def _booted(self, reason: str, *, cold: bool) -> None:
        self.plugged = True
        self.boot(reason, cold=cold)

    def hit_switch(self) -> None:
        """Somebody hits the switch, or its wire breaks."""
        self.switch_closed = False
        self._now()

    def sleep(self) -> None:
        """The machine suspends its ports for a while."""
        self._asleep = True
        self._world.later(self._between(0.05, 5.0), "machine wakes", self._wake)

    def _wake(self) -> None:
        self._asleep = False

    def press_caps_lock(self) -> None:
        """Somebody at the machine presses Caps Lock."""
        self._caps_lock = not self._caps_lock

    def stop_reading(self) -> None:
        """The host does not read the line for a while."""
        self._unread = True
        self._world.later(self._between(0.5, 8.0), "host reads", self._read)

    def _read(self) -> None:
        self._unread = False

    def mend(self) -> None:
        """Everything is as it should be again: the switch is closed, and the power was cut once."""
        self.switch_closed = True
        self._asleep = self._caps_lock = self._unread = False
        self._again("power on", cold=True)

    # --- its main loop --------------------------------------------------------------------------------------------

    def hear(self, data: bytes) -> None:
        """Bytes arrive."""
        if self.plugged:
            self._received += data
            self._now()

    def _now(self) -> None:
        if self.plugged:
            self._loop(self._round)

    def _awake(self) -> None:
        self._round += 1
        at = self._round
        self._world.later(self._between(*LOOP), "device", lambda: self._loop(at))

    def _loop(self, at: int) -> None:
        if at != self._round or not self.plugged:
            return
        received, self._received = self._received, b""
        typed = self._step(received)
        if self.resting:
            return
        quiet = not typed and not received
        seconds = self._between(0.2, 0.4) if quiet and not self.lit else self._between(0.05, 0.2)
        if typed:
            seconds = self._between(*LOOP)
        if self._faults.strike("device: its loop stalls"):
            seconds = self._between(0.2, 2.0)
        self._round += 1
        at = self._round
        self._world.later(seconds, "device", lambda: self._loop(at))

    def _step(self, received: bytes) -> bool:
        killed, connected, usb = not self.switch_closed, self.connected(), not self._asleep
        self._witness.saw(received, killed=killed, connected=connected, usb=usb)
        step = self._core.step(
            (self._ticks + self._world.micros // 1000) % TICKS, received, killed=killed, dtr=connected, usb=usb,
            caps_lock=self._caps_lock, room=self._room(),
        )  # fmt: skip
        self.lit = step.led
        self._witness.shines(led=step.led)
        for report in step.reports:
            self._hand_over(report)
        if step.send:
            self.send(step.send)
        return bool(step.reports)

    def _hand_over(self, report: tuple[Any, ...]) -> None:
        self._world.note(repr(report))
        if self._faults.strike("device: a report is not taken"):
            self._core.reported(ok=False, code=self._random.choice(("USB", "MEMORY")))
            return
        self._witness.came_out(report)
        self._core.reported(ok=True)
        if report[0] != "release":
            self.typing()

    def _room(self) -> int:
        if self._unread:
            return 0
        return self._random.randrange(200) if self._faults.strike("device: little room on the line") else 4096

    def _digest(self, data: bytes) -> str:
        if self._faults.strike("device: no memory"):
            raise MemoryError
        return sha256(data).hexdigest()

    def _between(self, low: float, high: float) -> float:
        return self._random.randint(int(low * 1_000_000), int(high * 1_000_000)) / 1_000_000
