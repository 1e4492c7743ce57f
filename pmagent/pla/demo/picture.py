"""A frame for the demo: a small picture of a terminal window, drawn here; PNG (W3C, PNG specification)."""

from __future__ import annotations

import struct
import zlib
from typing import Final

WIDTH: Final = 64
HEIGHT: Final = 40

_TITLE, _PAPER, _INK = b"\x50\x60\x70", b"\x10\x10\x18", b"\x90\xd0\x90"


def picture() -> bytes:
    """The PNG file's bytes: a title bar, and the beginnings of two lines."""
    rows = b"".join(b"\0" + b"".join(_dot(x, y) for x in range(WIDTH)) for y in range(HEIGHT))
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _dot(x: int, y: int) -> bytes:
    if y < 8:
        return _TITLE
    return _INK if y in (14, 15, 24, 25) and 4 <= x < 12 + y else _PAPER
