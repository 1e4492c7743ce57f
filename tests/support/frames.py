"""Pictures made here, and programs that stand in for those that look at them."""

from __future__ import annotations

import os
import struct
import sys
import zlib
from pathlib import Path


def png(width: int = 4, height: int = 3, *, comment: bytes = b"") -> bytes:
    """A grey PNG."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x7f" * width) * height)
    chunks = [chunk(b"IHDR", header), *([chunk(b"tEXt", comment)] if comment else [])]
    return b"\x89PNG\r\n\x1a\n" + b"".join([*chunks, chunk(b"IDAT", rows), chunk(b"IEND", b"")])


def chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk of a PNG."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def jpeg(width: int = 4, height: int = 3) -> bytes:
    """The beginning and the end of a JPEG; no decoder makes a picture of it."""
    table = b"\xff\xdb" + struct.pack(">H", 67) + bytes(65)
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\x01\x11\x00"
    return (
        b"\xff\xd8\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9) + table + frame + b"\xff\xda\x00\x02\xff\xd9"
    )


def bmp(width: int = 4, height: int = 3) -> bytes:
    """A black BMP; a negative height is written from the top down."""
    pixels = bytes((width * 3 + 3) // 4 * 4 * abs(height))
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, len(pixels), 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(pixels), 0, 0, 54) + header + pixels


def webp(width: int = 4, height: int = 3, kind: str = "VP8X") -> bytes:
    """The beginning of a WebP of this kind, as long as it says."""
    match kind:
        case "VP8X":
            body = bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        case "VP8L":
            body = b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little") + bytes(3)
        case _:
            body = b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height)
    inner = b"WEBP" + kind.ljust(4).encode() + struct.pack("<I", len(body)) + body
    return b"RIFF" + struct.pack("<I", len(inner)) + inner


def put(folder: Path, name: str, content: bytes, changed: float) -> Path:
    """A file of this content that was changed then."""
    path = folder / name
    path.write_bytes(content)
    os.utime(path, (changed, changed))
    return path


def stand_in(folder: Path, name: str, body: str) -> Path:
    """A program ``name`` in ``folder``: Python with ``arguments`` and ``given``, its standard input."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    lines = [
        "import os, sys", "arguments = sys.argv[1:]", "given = b'' if os.isatty(0) else sys.stdin.buffer.read()", body,
    ]
    path.write_text(f"#!{sys.executable} -I\n" + "\n".join(lines) + "\n")
    path.chmod(0o755)
    return path
