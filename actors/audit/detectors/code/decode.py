"""From the bytes of a Python file to its text, as Python reads them (PEP 263), and a little further; pure."""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple

NOT_UTF8: Final = "not UTF-8, and names no encoding: Python refuses it; read as Latin-1"
NULS: Final = "holds NUL bytes"
UNKNOWN_ENCODING: Final = "names an encoding that there is not"
WRONG_ENCODING: Final = "is not text in the encoding that it names"
TWO_ENCODINGS: Final = "names an encoding that its byte order mark contradicts: Python refuses it"

_COOKIE: Final = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK: Final = re.compile(rb"[ \t\f]*(?:#.*)?")
_WIDE: Final = (
    (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
_SLOW: Final = frozenset(("idna", "punycode", "undefined"))
"""Encodings of something else than files; to decode these takes time that grows with the square of the length."""
_HEAD_BYTES: Final = 4096


class Decoded(NamedTuple):
    """``text``, whose lines end with a line feed. ``fault``: what Python has against it ("": nothing); ``text`` is None
    where it makes no sense to read on."""

    text: str | None
    fault: str = ""


def decoded(content: bytes) -> Decoded:
    """Read the bytes of a source file. Python itself takes only UTF-8 or what the file names; UTF-16 and Latin-1 are
    read all the same, and told."""
    for mark, encoding in _WIDE:
        if content.startswith(mark):
            return _wide(content[len(mark) :], encoding)
    if b"\0" in content:
        return _with_nuls(content)
    marked = content.startswith(codecs.BOM_UTF8)
    body = content[len(codecs.BOM_UTF8) :] if marked else content
    named = _cookie(body)
    if named is not None:
        return _named(body, named, marked)
    try:
        return Decoded(_lines(body.decode()))
    except UnicodeDecodeError:
        return Decoded(_lines(body.decode("latin-1")), NOT_UTF8)


def _cookie(body: bytes) -> str | None:
    """The encoding that the first or second line names; the second counts only below a comment or a blank line."""
    for line in re.split(rb"\r\n|\r|\n", body[:_HEAD_BYTES], maxsplit=2)[:2]:
        found = _COOKIE.match(line)
        if found is not None:
            return found[1].decode("ascii", "replace")
        if not _BLANK.fullmatch(line):
            return None
    return None


def _named(body: bytes, name: str, marked: bool) -> Decoded:
    try:
        found = codecs.lookup(name).name
    except LookupError:
        return _despite(body, UNKNOWN_ENCODING)
    if found in _SLOW:
        return _despite(body, UNKNOWN_ENCODING)
    if marked and found != "utf-8":
        return _despite(body, TWO_ENCODINGS)
    try:
        return Decoded(_lines(body.decode(found)))
    except LookupError:  # rot13, zlib and their like are no encodings of text
        return _despite(body, UNKNOWN_ENCODING)
    except UnicodeError:
        return _despite(body, WRONG_ENCODING)


def _despite(body: bytes, fault: str) -> Decoded:
    """Read on as well as may be; names and keywords are ASCII nearly always."""
    try:
        return Decoded(_lines(body.decode()), fault)
    except UnicodeDecodeError:
        return Decoded(_lines(body.decode("latin-1")), fault)


def _wide(body: bytes, encoding: str) -> Decoded:
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        return Decoded(None, NULS)
    fault = f"is {encoding[:6].upper()}: Python refuses it"
    return Decoded(None, NULS) if "\0" in text else Decoded(_lines(text), fault)


def _with_nuls(content: bytes) -> Decoded:
    """Either every second byte is NUL and it is UTF-16 without its mark, or it is no text."""
    for encoding, odd in (("utf-16-le", 1), ("utf-16-be", 0)):
        half = content[odd::2]
        if half.count(0) > len(half) * 0.8 and len(content) % 2 == 0:
            return _wide(content, encoding)
    return Decoded(None, NULS)


def _lines(text: str) -> str:
    """Ends of lines as the parser counts them, so that a line of the text is a line of the tree."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
