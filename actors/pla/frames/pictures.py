"""Pictures, read off their bytes without decoding them: format, size, and whether it is all there; pure.

A frame may have been made by anybody who can write into a folder or stands before a camera. So nothing here follows
what a picture says of itself further than its bytes reach; decoding is left to programs behind a wall (``ocr``).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final, NamedTuple

SIDE_MAX: Final = 16_384
PIXELS_MAX: Final = 64 * 2**20
"""A larger picture is no frame of a screen."""


class Picture(NamedTuple):
    """A picture's format, and its size in pixels."""

    media_type: str
    width: int
    height: int


class NotAPicture(ValueError):
    """The bytes are no picture; ``unfinished``: they may have become one a moment later."""

    def __init__(self, text: str, *, unfinished: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.unfinished = unfinished


class TooLarge(ValueError):
    """A picture, of more pixels than a frame has."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__(f"{width} x {height}")
        self.text = f"it has {width} x {height} pixels, at most {SIDE_MAX} a side and {PIXELS_MAX} in all are taken"


def picture(content: bytes) -> Picture:
    """The picture that ``content`` is: a PNG (ISO/IEC 15948), JPEG (ITU-T T.81), WebP (RFC 9649) or BMP. Raises
    NotAPicture, TooLarge."""
    for beginning, read in _READERS.items():
        if content.startswith(beginning):
            found = read(content)
            if not (found.width and found.height):
                raise NotAPicture("it has no pixels")
            if max(found.width, found.height) > SIDE_MAX or found.width * found.height > PIXELS_MAX:
                raise TooLarge(found.width, found.height)
            return found
    if any(beginning.startswith(content) for beginning in _READERS):
        raise NotAPicture("it is not all there", unfinished=True)
    raise NotAPicture("it is no PNG, JPEG, WebP or BMP")


def _number(content: bytes, at: int, size: int, order: str = "big") -> int:
    """The number of ``size`` bytes at ``at``. Raises NotAPicture where the bytes do not reach so far."""
    if at + size > len(content):
        raise NotAPicture("it is not all there", unfinished=True)
    return int.from_bytes(content[at : at + size], "little" if order == "little" else "big")


# --- PNG -------------------------------------------------------------------------------------------------------------

_PNG: Final = b"\x89PNG\r\n\x1a\n"


def _png(content: bytes) -> Picture:
    """Every chunk is there, with its checksum, the header first and the end last."""
    at, width, height = len(_PNG), 0, 0
    while True:
        length = _number(content, at, 4)
        end = at + 12 + length
        kind = content[at + 4 : at + 8]
        check = _number(content, end - 4, 4)
        if zlib.crc32(content[at + 4 : end - 4]) != check:
            raise NotAPicture("a checksum in it is wrong")
        if at == len(_PNG):
            if kind != b"IHDR" or length != 13:
                raise NotAPicture("it does not begin with a header")
            width, height = _number(content, at + 8, 4), _number(content, at + 12, 4)
        if kind == b"IEND":
            if end != len(content):
                raise NotAPicture("something stands behind its end")
            return Picture("image/png", width, height)
        at = end


# --- JPEG ------------------------------------------------------------------------------------------------------------

_JPEG: Final = b"\xff\xd8\xff"
_FRAMES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_ALONE: Final = frozenset({0x01, *range(0xD0, 0xD8)})
_END: Final = b"\xff\xd9"


def _jpeg(content: bytes) -> Picture:
    """Its segments up to the frame's header say the size; the end of the image stands last but for padding."""
    at = 2
    while True:
        if _number(content, at, 1) != 0xFF:
            raise NotAPicture("a marker is missing in it")
        while _number(content, at, 1) == 0xFF:
            at += 1
        marker = content[at]
        at += 1
        if marker in _ALONE:
            continue
        if marker in (0xD8, 0xD9, 0xDA) or (length := _number(content, at, 2)) < 2:
            raise NotAPicture("it has no frame header")
        if marker in _FRAMES:
            height, width = _number(content, at + 3, 2), _number(content, at + 5, 2)
            if not content.rstrip(b"\0").endswith(_END):
                raise NotAPicture("its end is missing", unfinished=True)
            return Picture("image/jpeg", width, height)
        at += length


# --- WebP ------------------------------------------------------------------------------------------------------------


def _webp(content: bytes) -> Picture:
    """The container is as long as it says; its first chunk says the size."""
    length = _number(content, 4, 4, "little") + 8
    kind = content[8:16]
    if length > len(content):
        raise NotAPicture("it is not all there", unfinished=True)
    if kind[:4] != b"WEBP" or length != len(content):
        raise NotAPicture("it is no WebP")
    width, height = 0, 0
    if kind[4:] == b"VP8X":
        width, height = _number(content, 24, 3, "little") + 1, _number(content, 27, 3, "little") + 1
    elif kind[4:] == b"VP8L":
        if _number(content, 20, 1) != 0x2F:
            raise NotAPicture("it is no WebP")
        bits = _number(content, 21, 4, "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind[4:] == b"VP8 ":
        if content[23:26] != b"\x9d\x01\x2a":
            raise NotAPicture("it is no WebP")
        width, height = (_number(content, at, 2, "little") & 0x3FFF for at in (26, 28))
    else:
        raise NotAPicture("it is no WebP")
    return Picture("image/webp", width, height)


# --- BMP -------------------------------------------------------------------------------------------------------------


def _bmp(content: bytes) -> Picture:
    """As long as it says, with a header of version 3 or later."""
    length = _number(content, 2, 4, "little")
    if length > len(content):
        raise NotAPicture("it is not all there", unfinished=True)
    if length != len(content) or _number(content, 14, 4, "little") < 40:
        raise NotAPicture("it is no BMP")
    width, height = (_number(content, at, 4, "little") for at in (18, 22))
    if height >= 2**31:  # written from the top down
        height = 2**32 - height
    return Picture("image/bmp", width, height)


_READERS: Final[dict[bytes, Callable[[bytes], Picture]]] = {_PNG: _png, _JPEG: _jpeg, b"RIFF": _webp, b"BM": _bmp}
