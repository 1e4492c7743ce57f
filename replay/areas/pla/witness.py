"""A witness at the device: sees each byte that reaches it, its switch, its plug, and each report that leaves it, and
holds it to what may be typed (docs/design.md §16.7). Knows nothing of the firmware."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pmagent.contracts.pla import LEASE_SECONDS, Action
from pmagent.contracts.pla import digest as digest_of
from pmagent.contracts.pla_events import PlaExecutionRequested
from pmagent.replay.areas.pla.strokes import Typed
from pmagent.replay.simulation.world import require

LINE_MAX: Final = 2048
ROUNDS_MAX: Final = 20
LEASE_MICROS: Final = int(LEASE_SECONDS * 1_000_000)
"""So long after the last arm or ping something may be typed, whatever the host has asked for."""
RELEASE_MICROS: Final = 2_000_000
_MARGIN: Final = 1_000
"""Microseconds: a device counts whole milliseconds."""

Report = tuple[Any, ...]
"""("keyboard", modifiers, usages), ("mouse", buttons, x, y) or ("release",)."""


class Orders(NamedTuple):
    """Numbers of the requests on whose strength something is typed: the order, and what renewed the lease last."""

    commit: int
    lease: int


class Witness:
    """``now``: true time in microseconds. ``approved(execution, digest)`` raises Violation unless the log holds, now,
    all that it takes to type this, and gives what was approved."""

    def __init__(self, now: Callable[[], int], approved: Callable[[str, str], PlaExecutionRequested]) -> None:
        self._now = now
        self._approved = approved
        self.plains: dict[str, Action] = {}
        """Digest -> what any operator has ever asked for, plain."""
        self.typed: dict[str, Typed] = {}
        """Execution -> what came out for it."""
        self.held = False
        """Whether a key or button is down."""
        self._held_since = 0
        self._rounds = 0
        self._boot_id = ""
        self._boots: dict[str, str] = {}
        self._line = b""
        self._connected = False
        self._until = 0
        self._lease = 0
        self._renewed_at = 0
        self._killed = False
        self._current: tuple[str, str] | None = None
        self._orders = Orders(0, 0)
        self.renewed: Callable[[int], None] = lambda _: None
        """Called with the number of each request that renews the lease."""
        self._over: set[str] = set()

    @property
    def typing(self) -> tuple[str, Orders] | None:
        """The execution that is being typed, if one is, and what for."""
        return None if self._current is None else (self._current[0], self._orders)

    def powered(self, boot_id: str, *, cold: bool) -> None:
        """The device begins anew; ``cold``: its power was cut, which alone takes a kill away."""
        self._boot_id = boot_id
        self._line = b""
        self._connected = False
        self._killed = self._killed and not cold
        self._disarmed()
        self.held = False  # a keyboard that leaves the bus holds nothing

    def sees(self, data: bytes, *, killed: bool, connected: bool, usb: bool) -> None:
        """So things stand at this moment; then these bytes reach the device, if somebody holds the line open."""
        self._killed = self._killed or killed
        if connected != self._connected:
            self._connected = connected
            self._line = b""
            self._disarmed()
        if self._killed or not usb or self._now() >= self._until + _MARGIN:
            self._disarmed()
        self._goes_up(usb=usb)
        if not connected:
            return
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            message = decoded(line)
            if message is not None:
                self._received(message)

    def _goes_up(self, *, usb: bool) -> None:
        """A key that is down while nothing is typed goes up within some rounds of the device's loop, and soon."""
        if not self.held or self._current is not None or not usb:
            self._held_since, self._rounds = self._now(), 0
            return
        self._rounds += 1
        late = self._rounds > ROUNDS_MAX and self._now() - self._held_since > RELEASE_MICROS
        require(not late, "a key stays down")

    def shines(self, *, led: bool) -> None:
        """The light is on only while it is armed."""
        require(not led or self._now() < self._until + _MARGIN, "the device's light is on while it is not armed")

    def reported(self, report: Report) -> None:
        """This report was handed to USB."""
        if report[0] == "release":
            self.held = False
            for typed in self.typed.values():
                typed.released()
            return
        kind, *values = report
        usages = frozenset(usage for usage in values[1] if usage) if kind == "keyboard" else frozenset()
        self.held = bool(values[0] or usages)
        if kind == "keyboard" and not self.held and self._current is None:
            return  # keys go up on every way out
        self._may(report)
        assert self._current is not None, "just required"
        typed = self.typed[self._current[0]]
        if kind == "keyboard":
            typed.keyboard(values[0], usages)
        else:
            typed.mouse(*values)
        require(not typed.astray, f"{self._current[0]}: the device typed what was not approved")

    def _may(self, report: Report) -> None:
        require(not self._killed, f"the device typed {report[0]} after the kill")
        require(self._now() < self._until + _MARGIN, f"the device typed {report[0]} while it was not armed")
        silent = self._now() - self._renewed_at
        require(silent < LEASE_MICROS + _MARGIN, f"the device typed {report[0]} after {silent / 1e6:.2f} s of silence")
        require(self._current is not None, f"the device typed {report[0]} without an order")
        assert self._current is not None, "just required"
        execution, digest = self._current
        if execution not in self.typed:
            asked = self._approved(execution, digest)
            action = self.plains.get(digest) if asked.masked else asked.action
            require(action is not None and digest_of(action) == digest, f"{execution}: it has another digest")
            assert action is not None, "just required"
            self.typed[execution] = Typed(action)
            self._boots[execution] = self._boot_id
        require(execution not in self._over, f"{execution}: typed again after its end")
        require(self._boots[execution] == self._boot_id, f"{execution}: typed again after a reset")

    def _received(self, message: dict[str, Any]) -> None:
        op, mine = message.get("op"), message.get("boot_id") == self._boot_id
        if op in ("hello", "disarm"):
            self._disarmed()
        elif op == "arm" and mine and isinstance(message.get("lease_ms"), int):
            self._lease = message["lease_ms"] * 1000
            self._until = self._now() + self._lease
            self._renewed(message)
        elif op == "ping" and mine and self._now() < self._until + _MARGIN:
            self._until = self._now() + self._lease
            self._renewed(message)
        elif op == "commit" and mine and self._now() < self._until + _MARGIN:
            self._order(str(message.get("execution_id")), str(message.get("digest")), message["n"])

    def _renewed(self, message: dict[str, Any]) -> None:
        """A line may come again, and later than those that left after it."""
        self._renewed_at = self._now()
        self._orders = self._orders._replace(lease=max(self._orders.lease, message["n"]))
        self.renewed(message["n"])

    def _order(self, execution: str, digest: str, number: int) -> None:
        """Only one thing is typed at a time, and nothing that is over."""
        if execution in self._over or (self._current is not None and self._current[0] == execution):
            return
        if self._current is not None and self._current[0] in self.typed:
            if not self.typed[self._current[0]].whole:
                return
            self._over.add(self._current[0])
        self._current = execution, digest
        self._orders = self._orders._replace(commit=number)

    def _disarmed(self) -> None:
        self._until = 0
        if self._current is not None and self._current[0] in self.typed:
            self._over.add(self._current[0])
        self._current = None


def decoded(line: bytes) -> dict[str, Any] | None:
    """The object on a line; None when it is damaged."""
    body, star, sum_ = line.rpartition(b"*")
    if not star or len(line) >= LINE_MAX or sum_ != b"%04x" % crc(body):
        return None
    try:
        message = json.loads(body)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def crc(data: bytes) -> int:
    """CRC-16/MODBUS, four bits at a time."""
    register = 0xFFFF
    for byte in data:
        register ^= byte
        register = register >> 4 ^ _NIBBLES[register & 15]
        register = register >> 4 ^ _NIBBLES[register & 15]
    return register


def _nibble(number: int) -> int:
    for _ in range(4):
        number = number >> 1 ^ (0xA001 if number & 1 else 0)
    return number


_NIBBLES: Final = tuple(_nibble(number) for number in range(16))
