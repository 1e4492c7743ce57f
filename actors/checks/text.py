"""What a program wrote, as plain text; pure. It is shown to people, and stands in files that other programs read."""

from __future__ import annotations

import re
from typing import Final

_SEQUENCES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC: titles, links, the clipboard
    r"|\x1b[ -/]*[0-~]"
)
_INVISIBLE: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]"
)


def plain(raw: bytes, *, cut: bool) -> str:
    """``raw`` as text without control sequences, and without characters that cannot be seen or that reorder others. A
    carriage return begins a line. ``cut``: more followed, so the last line, which may be the beginning of anything, is
    left out."""
    text = raw.decode("utf-8", "replace")
    if cut:
        text = text.rpartition("\n")[0]
    text = _SEQUENCES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _INVISIBLE.sub("", text)
