"""What programs wrote, for a page: both ends of it, each character to be seen, nothing obeyed
(docs/design.md §18.4)."""

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

_CLIMBING: Final = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_MARKED: Final = re.compile(f"[\t\ud800-\udfff{UNSEEN}]|[{_CLIMBING}]{{5,}}")
_NAMES: Final = {"\t": "⇥"}
_BYTE: Final = range(0xDC80, 0xDD00)
"""What stands for a byte that is no UTF-8 (PEP 383)."""


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
    told = raw.decode("utf-8", "surrogateescape")
    parts: list[Markup] = []
    at = 0
    for found in islice(_MARKED.finditer(told), MARKS_MAX):
        parts.append(escape(told[at : found.start()]))
        parts.append(_mark(found[0]))
        at = found.end()
    parts.append(escape(clean_block(told[at:])))
    return Markup("").join(parts)


def _mark(char: str) -> Markup:
    if len(char) > 1:  # marks that climb over other lines
        return Markup('<span class="mark" title="combining marks">{}</span>').format(f"{len(char)} marks")
    code = ord(char)
    name = _NAMES.get(char) or (f"\\x{code - 0xDC00:02x}" if code in _BYTE else f"U+{code:04X}")
    kind = "a byte" if code in _BYTE else f"U+{code:04X}"
    return Markup('<span class="mark" title="{}">{}</span>').format(kind, name)
