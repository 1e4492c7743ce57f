"""Lines of the wire, ``<json>*<crc>`` and a newline: written, and put together from bytes as they arrive
(docs/hid-protocol.md, Lines)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

LINE_BYTES_MAX: Final = 2048
"""Of a whole line, newline included."""

DEPTH_MAX: Final = 16
"""No line nests deeper; the contracts' documents need five."""

Damage = Literal["overlong", "checksum", "shape"]
"""Why a line is not acted on: longer than a line may be; a checksum that does not fit, or none; no JSON object as the
protocol has them (a key twice, not ASCII, a space outside texts, half a character, a number that is none, too deep)."""

SPOILER: Final = b"~"
"""Makes an unfinished line a damaged one. Alone on a line it means nothing."""

_TAIL: Final = re.compile(rb"\*[0-9a-f]{4}\Z")
_TAIL_BYTES: Final = 5
_TEXT: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_PRINTABLE: Final = re.compile(rb"[ -~]+\Z")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))


class LineTooLong(ValueError):
    """An object does not fit a line: a caller's mistake, since what is sent is cut into parts before."""


class Damaged(msgspec.Struct, frozen=True):
    """In place of a line that was no good."""

    kind: Damage


class _BadShape(ValueError):
    """No object of the protocol."""


def crc16(data: bytes) -> int:
    """CRC-16/MODBUS: polynomial A001 reflected, initial FFFF."""
    crc = 0xFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return crc


def encode(fields: Mapping[str, Any]) -> bytes:
    """The line for an object, newline included. Raises LineTooLong, ValueError (a number that is none)."""
    body = _ENCODER.encode(fields).encode("ascii")
    line = b"%s*%04x\n" % (body, crc16(body))
    if len(line) > LINE_BYTES_MAX:
        raise LineTooLong(f"{len(line)} bytes do not fit a line of {LINE_BYTES_MAX}")
    return line


def decode(line: bytes) -> dict[str, Any] | Damaged:
    """The object of one line without its newline."""
    if len(line) >= LINE_BYTES_MAX:
        return Damaged("overlong")
    body = line[:-_TAIL_BYTES]
    if not _TAIL.search(line) or int(line[-4:], 16) != crc16(body):
        return Damaged("checksum")
    try:
        return _object(body)
    except _BadShape:
        return Damaged("shape")


class LineReader:
    """Puts lines together from bytes that come cut anywhere. It never holds more than one line: a longer one is skipped
    up to its newline."""

    def __init__(self, limit: int = LINE_BYTES_MAX) -> None:
        self._limit = limit
        self._held = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[dict[str, Any] | Damaged]:
        """The lines that ``data`` ends, in order; empty ones mean nothing, and a spoiler alone."""
        found: list[dict[str, Any] | Damaged] = []
        *ended, rest = data.split(b"\n")
        for piece in ended:
            self._hold(piece)
            if self._skipping:
                found.append(Damaged("overlong"))
            elif self._held and self._held != SPOILER:
                found.append(decode(bytes(self._held)))
            self._skipping = False
            self._held.clear()
        self._hold(rest)
        return found

    def _hold(self, piece: bytes) -> None:
        if self._skipping or len(self._held) + len(piece) >= self._limit:
            self._skipping = True
            self._held.clear()
        else:
            self._held += piece


def _object(body: bytes) -> dict[str, Any]:
    """Raises _BadShape."""
    if not _PRINTABLE.match(body):
        raise _BadShape
    structure = _TEXT.sub(b"", body)
    if b" " in structure or _depth(structure) > DEPTH_MAX:
        raise _BadShape
    try:
        found = _DECODER.decode(body.decode("ascii"))
    except ValueError as error:  # also what the hooks raise
        raise _BadShape from error
    if not isinstance(found, dict) or (b"\\u" in body and _has_half_characters(found)):
        raise _BadShape
    return found


def _depth(structure: bytes) -> int:
    """How deep objects and lists nest; ``structure`` is JSON without its texts."""
    deepest = depth = 0
    for bracket in structure.translate(None, _NO_BRACKETS):
        if bracket in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _BadShape
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _BadShape
    return number


def _no_number(text: str) -> float:
    raise _BadShape(text)


def _has_half_characters(found: dict[str, Any]) -> bool:
    """Whether a text holds a surrogate without its other half, which no log could hold."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _table() -> tuple[int, ...]:
    found = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ 0xA001 if crc & 1 else crc >> 1
        found.append(crc)
    return tuple(found)


_CRC: Final = _table()
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_number)
