"""Programs' output for a page: both ends of it, each character visible, nothing obeyed (docs/design.md §18.4)."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

import msgspec
from markupsafe import Markup, escape

from pmagent.clean import clean_block
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.storage import Blobs
from pmagent.events.unseen import UNSEEN

END_BYTES: Final = 64 * 1024
"""So much is shown from each end."""

MARKS_MAX: Final = 4_000
"""So many marks has a text; what comes behind them has one character for each that cannot be seen."""

_COMBINING: Final = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_HIDING: Final = f"[\ud800-\udfff{UNSEEN}]|(?<=[{_COMBINING}]{{4}})[{_COMBINING}]+"
"""Characters that are invisible, reorder, or are obeyed; and more than four marks on a letter."""
_PATTERNS: Final = {False: re.compile(_HIDING), True: re.compile(f"\t|{_HIDING}")}
_BYTE: Final = range(0xDC80, 0xDD00)
"""Stand-ins for bytes that are not UTF-8 (PEP 383)."""
_MARK: Final = Markup('<span class="mark" title="{0}">{0}</span>')


class Shown(msgspec.Struct, frozen=True):
    """A content as it is shown: all of it, or its beginning and its end, with ``cut`` bytes left out between.
    ``trouble`` says why there is nothing to be shown."""

    head: Markup
    tail: Markup
    size: int
    cut: int
    trouble: str = ""


def shown(blobs: Blobs, sha256: str, end_bytes: int = END_BYTES) -> Shown:
    """The blob of this name, once all of it has been checked against it. Raises OSError."""
    nothing = Markup("")
    try:
        reader = blobs.reader(sha256)
        try:
            head, tail = b"", b""
            for piece in reader.pieces():
                if len(head) < end_bytes:
                    taken = end_bytes - len(head)
                    head, piece = head + piece[:taken], piece[taken:]  # noqa: PLW2901 - the rest of it
                tail = (tail + piece)[-end_bytes:]
        finally:
            reader.close()
    except (NotFound, CorruptLog) as error:
        return Shown(nothing, nothing, 0, 0, error.message)
    cut = reader.size - len(head) - len(tail)
    if cut:
        return Shown(text(head), text(tail), reader.size, cut)
    return Shown(text(head + tail), nothing, reader.size, 0)


def text(raw: bytes) -> Markup:
    """The text with every character to be seen: controls, what reorders or hides, and bytes that are no UTF-8, as
    marks; line breaks break lines."""
    return marked(raw.decode("utf-8", "surrogateescape"), tabs=True, most=MARKS_MAX)


def marked(text: str, *, tabs: bool = False, most: int | None = None) -> Markup:
    """``text`` with each character that is not seen as a mark with its name, and with ``tabs`` each tab. Blanks and
    line breaks stay as they are. At most ``most`` marks are made (None: all)."""
    parts: list[Markup] = []
    end = 0
    for found in islice(_PATTERNS[tabs].finditer(text), most):
        parts += [escape(text[end : found.start()]), _MARK.format(_name(found[0]))]
        end = found.end()
    parts.append(escape(text[end:] if most is None else clean_block(text[end:])))
    return Markup("").join(parts)


def _name(hidden: str) -> str:
    code = ord(hidden[0])
    if code in _BYTE:
        return f"\\x{code - 0xDC00:02x}"
    return "⇥" if hidden == "\t" else f"U+{code:04X}" + (f" x{len(hidden)}" if len(hidden) > 1 else "")


def decoded(raw: bytes) -> str:
    r"""Bytes as text; what is no UTF-8 as ``\xNN``."""
    return raw.decode("utf-8", "backslashreplace")
