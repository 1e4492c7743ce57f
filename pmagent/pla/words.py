"""An action's content in words and bytes, for screens and pages; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

ROW: Final = 16


def steps(x: int, y: int) -> str:
    """A way of the pointer, in words."""
    sideways = f"{abs(x)} {'left' if x < 0 else 'right'}" if x else ""
    upright = f"{abs(y)} {'up' if y < 0 else 'down'}" if y else ""
    return ", ".join(part for part in (sideways, upright) if part) or "nowhere"


def counted(text: str, enter: str = "", tab: str = "") -> str:
    """How much a text is, and how often it presses the keys Enter and Tab, named with ``enter`` and ``tab`` behind."""
    parts = [f"{len(text)} character{'' if len(text) == 1 else 's'}"]
    for key, char in ((f"Enter{enter}", "\n"), (f"Tab{tab}", "\t")):
        times = text.count(char)
        parts += [f"{key} {times} time{'' if times == 1 else 's'}"] if times else []
    return ", ".join(parts)


def hex_rows(text: str) -> Iterator[str]:
    """The bytes of a text: offset, hex, and what of it can be read, sixteen a row."""
    raw = text.encode("utf-8", "surrogatepass")
    for at in range(0, len(raw), ROW):
        row = raw[at : at + ROW]
        readable = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{at:04x}  {row.hex(' '):<{ROW * 3 - 1}}  |{readable}|"
