"""A keyboard's reports as text: what a machine with a US layout shows on its screen."""

from __future__ import annotations

from typing import Final

_SHIFT: Final = 0x22
"""Either shift key."""
_OTHERS: Final = 0xDD
"""Ctrl, Alt and GUI: with them a key is a command, and no character."""

_PLAIN: Final = dict(
    zip(range(4, 57), "abcdefghijklmnopqrstuvwxyz1234567890\n\0\0\t -=[]\\\0;'`,./", strict=True)
)  # usage ids of the HID usage tables (keyboard page); escape, backspace and the non-US key give no character
_SHIFTED: Final = dict(zip(range(4, 57), 'ABCDEFGHIJKLMNOPQRSTUVWXYZ!@#$%^&*()\n\0\0\t _+{}|\0:"~<>?', strict=True))


class Screen:
    """Follows the reports of one keyboard."""

    def __init__(self) -> None:
        self._down: tuple[int, ...] = ()

    def take(self, modifiers: int, keycodes: tuple[int, ...]) -> str:
        """The characters that this report makes appear: those of keys that were not down before."""
        new = [code for code in keycodes if code not in self._down]
        self._down = keycodes
        if modifiers & _OTHERS:
            return ""
        layout = _SHIFTED if modifiers & _SHIFT else _PLAIN
        return "".join(layout.get(code, "") for code in new).replace("\0", "")

    def release(self) -> None:
        """Nothing is down any more."""
        self._down = ()
