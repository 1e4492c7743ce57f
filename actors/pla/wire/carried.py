"""The line to a device that is plugged into another host: bytes both ways in letters, and the lease of the worker that
carries them there (docs/design.md §4.8). Pure: no clock, no connection.

The two ends share a place for one letter each. A letter holds all bytes that the other end has not confirmed: one that
is lost, late, or left twice changes nothing. Each letter of the worker has a number, and each of the holder names the
last one that it has read. So the worker knows, by its own clock alone, when it sent what the holder has answered: its
lease counts from there. Times are nanoseconds of CLOCK_BOOTTIME.
"""

from __future__ import annotations

from typing import Final

from pmagent.events.attempts import Letter
from pmagent.events.lease import SECOND, Sighting, Term

LEASE: Final = 2 * SECOND
"""Of the line: as long as that of an armed device."""

PAUSE_SECONDS: Final = 0.05
"""Between two letters of one end."""

OPENING: Final = "opening"
"""Why the worker carries nothing yet: it waits for the holder's answer, and opens the device."""

LETTER_BYTES_MAX: Final = 64 * 1024
"""More is not taken from either end before the other one has confirmed some of it."""


def told(code: str, text: str, hint: str = "") -> str:
    """Why the worker carries the line no further, as its letter says it."""
    return f"{code}\t{text}\t{hint}"


class Garbled(Exception):
    """A letter that the other end of this line cannot have left."""


class _Mail:
    """One end's bytes."""

    def __init__(self) -> None:
        self._out = bytearray()
        self._at = 0
        self._taken = 0

    @property
    def waiting(self) -> int:
        """So many bytes are not confirmed."""
        return len(self._out)

    def put(self, data: bytes) -> None:
        """Send ``data``."""
        self._out += data

    def letter(self, sign: int, ended: str = "") -> Letter:
        """The letter to leave now."""
        return Letter(sign, self._at, bytes(self._out), self._taken, ended)

    def confirmed(self, letter: Letter) -> bool:
        """The other end has taken so much; whether that is more than before. Raises Garbled."""
        more = letter.taken - self._at
        if more > len(self._out):
            raise Garbled("more bytes are confirmed than were sent")
        if more <= 0:
            return False
        del self._out[:more]
        self._at = letter.taken
        return True

    def read(self, letter: Letter) -> bytes:
        """The bytes of the letter that were not read before. Raises Garbled."""
        if letter.at > self._taken or len(letter.content) > 2 * LETTER_BYTES_MAX:
            raise Garbled("bytes are missing")
        new = letter.content[self._taken - letter.at :]
        self._taken += len(new)
        return new


class Carrier:
    """The worker's end. Nothing reaches the device while ``live`` is false: then its port is closed."""

    def __init__(self) -> None:
        self._mail = _Mail()
        self._term = Term(LEASE)
        self._sign = 0
        self._sent: dict[int, int] = {}

    @property
    def answered(self) -> bool:
        """Whether the holder has answered once."""
        return self._term.sent > 0

    @property
    def ends(self) -> int:
        """When the lease ends."""
        return self._term.ends

    @property
    def has_room(self) -> bool:
        """Whether more of what the device says may be put."""
        return self._mail.waiting < LETTER_BYTES_MAX

    def live(self, now: int) -> bool:
        """Whether bytes may be given to the device."""
        return now < self._term.live_until

    def put(self, data: bytes) -> None:
        """The device has said ``data``."""
        self._mail.put(data)

    def letter(self, now: int, ended: str = "") -> Letter:
        """The letter to leave at this time."""
        self._sign += 1
        self._sent[self._sign] = now
        return self._mail.letter(self._sign, ended)

    def came(self, letter: Letter) -> None:
        """The holder's letter was read. Raises Garbled."""
        sent = self._sent.get(letter.sign)
        if sent is not None:
            self._term.renewed(sent)
            self._sent = {sign: at for sign, at in self._sent.items() if sign > letter.sign}
        self._mail.confirmed(letter)

    def taken(self, letter: Letter) -> bytes:
        """The bytes for the device, all of which it gets now, if the lease is live. Raises Garbled."""
        return self._mail.read(letter)


class Sender:
    """The holder's end, from ``now`` on."""

    def __init__(self, now: int) -> None:
        self._mail = _Mail()
        self._sign = 0
        self._sighting = Sighting()
        self._moved = now

    @property
    def answered(self) -> bool:
        """Whether the worker has left a letter."""
        return self._sign > 0

    @property
    def is_clear(self) -> bool:
        """Whether all that was put has been given to the device."""
        return not self._mail.waiting

    def put(self, data: bytes, now: int) -> None:
        """Send ``data``; to be called when ``is_clear``."""
        self._mail.put(data)
        self._moved = now

    def letter(self) -> Letter:
        """The letter to leave."""
        return self._mail.letter(self._sign)

    def came(self, letter: Letter, now: int) -> bytes:
        """The worker's letter was read: the bytes that the device said. Raises Garbled."""
        if letter.sign > self._sign:
            self._sign = letter.sign
            self._sighting.saw((letter.sign,), now)
        if self._mail.confirmed(letter):
            self._moved = now
        return self._mail.read(letter)

    def over(self, now: int) -> bool:
        """Whether the worker's lease is over, as far as can be seen from here; or the device takes nothing."""
        silent = self.answered and now >= self._sighting.over_at(LEASE)
        return silent or (not self.is_clear and now >= self._moved + LEASE)
