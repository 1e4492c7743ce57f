"""A keyboard's reports as text: what a machine with a layout shows on its screen."""

from __future__ import annotations

import unicodedata
from typing import Final

from pmagent.firmware.layout import ALTGR, SHIFT, is_dead
from pmagent.firmware.layouts import LAYOUTS

_SHIFTS: Final = SHIFT | 0x20
"""Either shift key."""
_OTHERS: Final = 0xFF & ~(_SHIFTS | ALTGR)
"""Ctrl, Alt and GUI: with them a key is a command, and no character."""
_ALONE: Final = {"\u0300": "`", "\u0302": "^", "\u0303": "~"}
"""Dead key -> what it types with a space."""
_FIRST, _EXTRA, _AT = 0x04, 0x64, 53
"""The usage with which the table's rows begin, and the one that stands at their end."""


class Screen:
    """Follows the reports of one keyboard."""

    def __init__(self, layout: str = "us") -> None:
        self._levels = LAYOUTS[layout]
        self._down: tuple[int, ...] = ()
        self._dead = ""

    def take(self, modifiers: int, keycodes: tuple[int, ...]) -> str:
        """The characters that this report makes appear: those of keys that were not down before."""
        new = [code for code in keycodes if code not in self._down]
        self._down = keycodes
        if modifiers & _OTHERS:
            return ""
        level = bool(modifiers & _SHIFTS) + 2 * bool(modifiers & ALTGR)
        return "".join(self._composed(self._shown(level, code)) for code in new)

    def release(self) -> None:
        """Nothing is down any more."""
        self._down = ()

    def _shown(self, level: int, code: int) -> str:
        row = self._levels[level] if level < len(self._levels) else ""
        at = _AT if code == _EXTRA else code - _FIRST
        return row[at].replace("\0", "") if 0 <= at < len(row) and (at < _AT or code == _EXTRA) else ""

    def _composed(self, shown: str) -> str:
        if not shown or is_dead(shown):
            self._dead = shown or self._dead
            return ""
        dead, self._dead = self._dead, ""
        if not dead:
            return shown
        if shown == " ":
            return _ALONE.get(dead, "")
        composed = unicodedata.normalize("NFC", shown + dead)
        return composed if len(composed) == 1 else ""
