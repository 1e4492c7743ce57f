"""Lines: ``<json>*<crc>`` and a newline, as bytes arrive and leave (docs/hid-protocol.md, Lines)."""

from .document import Unreadable, read, write

LINE_MAX = 2048
"""Bytes of a line, newline included."""

_TAIL = 5  # the star and four digits
_SPOILER = 0x7E
"""Makes an unfinished line a damaged one. Alone on a line it means nothing."""


def _table() -> list[int]:
    found = []
    for byte in range(256):
        sum = byte
        for _ in range(8):
            sum = sum >> 1 ^ 0xA001 if sum & 1 else sum >> 1
        found.append(sum)
    return found


_CRC = _table()


def crc16(data: bytes) -> int:
    """CRC-16/MODBUS: polynomial A001 reflected, initial FFFF."""
    sum = 0xFFFF
    for byte in data:
        sum = sum >> 8 ^ _CRC[(sum ^ byte) & 0xFF]
    return sum


def encode(value: dict[str, object]) -> bytes:
    """The line for ``value``."""
    body = write(value).encode()
    return body + f"*{crc16(body):04x}\n".encode()


def decode(line: bytes) -> dict[str, object] | None:
    """The object of a ``line`` without its newline; None when it is damaged."""
    body = line[:-_TAIL]
    if line[-_TAIL:] != f"*{crc16(body):04x}".encode():
        return None
    try:
        value = read(body)
    except Unreadable:
        return None
    return value if isinstance(value, dict) else None


class LineReader:
    """Puts lines together. It never holds more than a line."""

    def __init__(self) -> None:
        self._held = bytearray(LINE_MAX)
        self._length = 0
        self._skipping = False

    def clear(self) -> None:
        """Forget an unfinished line."""
        self._length = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[dict[str, object] | None]:
        """The lines that ``data`` ends: objects, and None for each that is damaged. Empty lines mean nothing, and
        those of a spoiler alone."""
        found: list[dict[str, object] | None] = []
        begin = 0
        while begin < len(data):
            newline = data.find(b"\n", begin)
            end = len(data) if newline < 0 else newline
            self._hold(data[begin:end])
            if newline < 0:
                break
            if self._skipping:
                found.append(None)
            elif self._length > 1 or (self._length and self._held[0] != _SPOILER):
                found.append(decode(bytes(self._held[: self._length])))
            self.clear()
            begin = newline + 1
        return found

    def _hold(self, data: bytes) -> None:
        if self._skipping or self._length + len(data) >= LINE_MAX:
            self._skipping = True
            self._length = 0
            return
        self._held[self._length : self._length + len(data)] = data
        self._length += len(data)
