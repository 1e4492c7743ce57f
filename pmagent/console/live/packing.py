"""Messages on the wire: made once for all who get the same, and packed for those who take it so.

Packed is the content coding "deflate": a zlib stream (RFC 9110, 8.4.1.2; RFC 1950). A piece is packed by itself, up to
a boundary of bytes, and refers to nothing before it; so any pieces in any order make one stream, which needs nothing of
its own but the sum at its end. Rows of the log take an eighth so, of the network and of what waits for a slow reader.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

LEVEL: Final = 1
"""zlib's quickest: rows are so alike that more gains little."""
SHORT: Final = 128
"""So few bytes are stored as they are."""

_BASE: Final = 65_521
_HEAD: Final = b"\x78\x01"
_NO_MORE: Final = b"\x03\x00"


class Piece(NamedTuple):
    """One or more whole messages; none when ``plain`` is empty. ``sum``: the Adler-32 of ``plain``."""

    plain: bytes
    packed: bytes
    sum: int


def piece(plain: bytes) -> Piece:
    """``plain``, and what it is packed (RFC 1951: one stored block when it is short, else flushed blocks)."""
    if not plain:
        return NOTHING
    if len(plain) < SHORT:
        size = len(plain)
        packed = b"\0" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little") + plain
    else:
        packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = packer.compress(plain) + packer.flush(zlib.Z_FULL_FLUSH)
    return Piece(plain, packed, zlib.adler32(plain))


NOTHING: Final = Piece(b"", b"", 1)


class Wire(Protocol):
    """How the pieces go to one browser. ``coding``: the content coding, "" for none."""

    coding: str

    def carry(self, pieces: Iterable[Piece]) -> bytes:
        """The bytes for these pieces."""

    def sent(self) -> None:
        """All that was carried has been sent."""

    def dropped(self) -> None:
        """Everything carried since then was not sent, and will not be."""

    def end(self) -> bytes:
        """The bytes for the end, behind which there is nothing."""


class Plain:
    """As they are."""

    coding = ""

    def carry(self, pieces: Iterable[Piece]) -> bytes:
        """See Wire."""
        return b"".join(piece.plain for piece in pieces)

    def sent(self) -> None:
        """See Wire."""

    def dropped(self) -> None:
        """See Wire."""

    def end(self) -> bytes:
        """See Wire."""
        return b""


class Packed:
    """As one zlib stream."""

    coding = "deflate"

    def __init__(self) -> None:
        self._begun = False
        self._sum = NOTHING.sum
        self._sent = (self._begun, self._sum)

    def carry(self, pieces: Iterable[Piece]) -> bytes:
        """See Wire."""
        parts = [] if self._begun else [_HEAD]
        self._begun = True
        for piece in pieces:
            parts.append(piece.packed)
            self._sum = joined(self._sum, piece.sum, len(piece.plain))
        return b"".join(parts)

    def sent(self) -> None:
        """See Wire."""
        self._sent = (self._begun, self._sum)

    def dropped(self) -> None:
        """See Wire."""
        self._begun, self._sum = self._sent

    def end(self) -> bytes:
        """See Wire."""
        return self.carry(()) + _NO_MORE + self._sum.to_bytes(4, "big")


def joined(first: int, second: int, size: int) -> int:
    """The Adler-32 of two texts behind each other, of theirs; ``size``: bytes of the second (RFC 1950, section 9)."""
    low, high = first & 0xFFFF, first >> 16
    low_2, high_2 = second & 0xFFFF, second >> 16
    return (low + low_2 - 1) % _BASE | (high + high_2 + size * (low - 1)) % _BASE << 16


def wire_for(accepted: str) -> Wire:
    """The coding for a browser that sends this ``Accept-Encoding`` (RFC 9110, 12.5.3)."""
    for offer in accepted.lower().split(","):
        coding, _, weight = offer.partition(";")
        if coding.strip() == Packed.coding and weight.strip().rstrip("0.") != "q=":
            return Packed()
    return Plain()
