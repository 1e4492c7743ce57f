"""The line between host and device, which damages what it carries; it keeps the order, as serial lines do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.faults import Faults
from pmagent.replay.simulation.world import World

Deliver = Callable[[bytes], None]

GARBAGE: Final = (
    b"\x00\xff\xfe\n", b"{}\n", b"[1,2]*0000\n", b'{"op":"disarmed"}\n', b"*ffff\n", b"\n\n\n",
    b'{"op":"commit"}*0000\n', b"\xc3\x28*1234\n", b'{"re":1,"ok":true}\n', b"\x1b[2J~~~", b"ready> ",
)  # fmt: skip
PROBES: Final = (b"AT\r", b"AT+GCAP\r\n", b"ATE1 E0\r", b"~\x00\x78\xf0\x7e")
"""Bytes that modem managers and the like send to any device that looks like a modem."""


class Way:
    """One direction. ``name`` is that of its faults: to the device, or to the host."""

    def __init__(self, world: World, faults: Faults, name: str) -> None:
        self._world = world
        self._faults = faults
        self._random = world.chance.stream(f"pla: line to the {name}")
        self._name = name
        self._free_at = 0.0
        self._held = b""

    def carry(self, data: bytes, deliver: Deliver) -> None:
        """Bring ``data`` to the other end, a little later, more or less as it is."""
        data = self._damaged(data)
        if self._struck("merged"):
            self._held += data
            return
        data, self._held = self._held + data, b""
        if not data:
            return
        delay = between(self._random, 0.0005, 0.01)
        if self._struck("delayed"):
            delay = between(self._random, 0.1, 6.0)
        self._bring(delay, data, deliver)
        if self._struck("doubled"):
            self._bring(0.001, data, deliver)
        if self._struck("repeated later"):
            seconds = between(self._random, 0.1, 5.0)
            self._world.later(seconds, "line repeats", partial(self._bring, 0.001, data, deliver))

    def _bring(self, delay: float, data: bytes, deliver: Deliver) -> None:
        pieces = [data]
        if len(data) > 1 and self._struck("in pieces"):
            at = self._inside(data)
            pieces = [data[:at], data[at:]]
        for piece in pieces:
            # In order, whatever delays what: nothing overtakes on a line.
            self._free_at = max(self._free_at, self._world.seconds + delay)
            self._world.later(self._free_at - self._world.seconds, f"line {self._name}", partial(deliver, piece))
            delay = between(self._random, 0.0005, 0.05)

    def _damaged(self, data: bytes) -> bytes:
        random = self._random
        if self._struck("dropped"):
            return b""
        if len(data) > 1 and self._struck("cut"):
            at = self._inside(data)
            return data[:at] if random.random() < 0.5 else data[at:]
        if self._struck("flipped"):
            at = int(random.random() * len(data))
            data = data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]
        if self._struck("garbage"):
            data = random.choice((random.choice(GARBAGE) + data, data + random.choice(GARBAGE)))
        if self._struck("overlong"):
            data = b'{"x":"' + b"x" * random.choice((2100, 5000)) + random.choice((b"", b"\n")) + data
        return data

    def _inside(self, data: bytes) -> int:
        """A place between two bytes; by one draw, however long it is."""
        return 1 + int(self._random.random() * (len(data) - 1))

    def _struck(self, what: str) -> bool:
        return self._faults.strike(f"line to the {self._name}: {what}")


class Cable:
    """Both directions, and whose bytes go astray in them."""

    def __init__(self, world: World, faults: Faults) -> None:
        self._faults = faults
        self._random = world.chance.stream("pla: probes")
        self._down = Way(world, faults, "device")
        self._up = Way(world, faults, "host")

    def to_device(self, data: bytes, deliver: Deliver, back: Deliver) -> None:
        """The host writes; ``back`` is where an echo comes to."""
        if self._faults.strike("line: probed as a modem"):
            data = self._random.choice(PROBES) + data
        self._down.carry(data, deliver)
        if self._faults.strike("line: echoes"):
            self._up.carry(data, back)

    def to_host(self, data: bytes, deliver: Deliver) -> None:
        """The device writes."""
        self._up.carry(data, deliver)
