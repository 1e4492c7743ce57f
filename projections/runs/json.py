"""JSON in which everything is to be seen: the same values, and harmless where a terminal or an editor shows it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pmagent.projections.core.markdown import HIDDEN


def line(value: Any) -> bytes:
    """A value as one line, also for readers who take U+0085 or U+2028 for a line's end."""
    return _escaped(msgspec.json.encode(value)) + b"\n"


def document(value: Any) -> bytes:
    """A value as a document for people to look into."""
    return _escaped(msgspec.json.format(msgspec.json.encode(value), indent=2)) + b"\n"


def _escaped(raw: bytes) -> bytes:
    """With escapes for what hides, reorders or is obeyed: such characters stand in JSON only inside of texts."""
    if raw.isascii() and b"\x7f" not in raw:
        return raw
    return HIDDEN.sub(_escape, raw.decode()).encode()


def _escape(found: re.Match[str]) -> str:
    if found[0] == "\n":  # between values
        return "\n"
    raw = found[0].encode("utf-16-be")
    return "".join(f"\\u{raw[at : at + 2].hex()}" for at in range(0, len(raw), 2))
