"""A program's output as plain text; pure. People see it, and other programs read it in files."""

from __future__ import annotations

import re
from typing import Final

from pmagent.events.unseen import UNSEEN

_SEQUENCES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC: titles, links, the clipboard
    r"|\x1b[ -/]*[0-~]"
)
_UNSEEN: Final = re.compile(f"[{UNSEEN}]")


def plain(raw: bytes, *, cut: bool) -> str:
    """``raw`` as text without control sequences, and without characters that cannot be seen or that reorder others. A
    carriage return begins a line. ``cut``: more followed, so the last line, which may be the beginning of anything, is
    left out."""
    text = raw.decode("utf-8", "replace")
    if cut:
        text = text.rpartition("\n")[0]
    text = _SEQUENCES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _UNSEEN.sub("", text)
