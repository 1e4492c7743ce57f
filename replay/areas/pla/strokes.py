"""The meaning of reports at a USB port: keys that went down together, the pointer's way, clicks; and what an action
should come to. Written apart from the firmware's way through its tables (HID Usage Tables 1.12, chapter 10): what names
no layout goes by a table of its own, of US keyboards; else a press is looked at as a machine does, by what the key
shows, and marks are put on letters by Unicode's rules."""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import Final

from pmagent.contracts.pla import Action, KeyCombo, MouseClick, MouseMove, TypeText
from pmagent.firmware.layouts import LAYOUTS

Chord = tuple[int, frozenset[int]]
"""Modifier bits and usages that were down between two moments at which nothing was."""

_MODIFIER: Final = {"ctrl": 0x01, "shift": 0x02, "alt": 0x04, "gui": 0x08}
_SHIFT: Final = 0x02

_USAGE: Final[dict[str, int]] = {
    **{letter: 4 + number for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz")},
    **{digit: 30 + number for number, digit in enumerate("1234567890")},
    **{f"f{number}": 57 + number for number in range(1, 13)},
    "enter": 40, "escape": 41, "backspace": 42, "tab": 43, "space": 44, "insert": 73, "home": 74, "page_up": 75,
    "delete": 76, "end": 77, "page_down": 78, "right": 79, "left": 80, "down": 81, "up": 82,
}  # fmt: skip

_PUNCTUATION: Final = {45: "-_", 46: "=+", 47: "[{", 48: "]}", 49: "\\|", 51: ";:", 52: "'\"", 53: "`~", 54: ",<",
                       55: ".>", 56: "/?"}  # fmt: skip
_DIGITS_SHIFTED: Final = "!@#$%^&*()"

_BUTTON: Final = {"left": 1, "right": 2, "middle": 4}


def _characters() -> dict[str, Chord]:
    found: dict[str, Chord] = {}
    for letter in "abcdefghijklmnopqrstuvwxyz":
        found[letter] = (0, frozenset((_USAGE[letter],)))
        found[letter.upper()] = (_SHIFT, frozenset((_USAGE[letter],)))
    for digit, shifted in zip("1234567890", _DIGITS_SHIFTED, strict=True):
        found[digit] = (0, frozenset((_USAGE[digit],)))
        found[shifted] = (_SHIFT, frozenset((_USAGE[digit],)))
    for usage, pair in _PUNCTUATION.items():
        found[pair[0]] = (0, frozenset((usage,)))
        found[pair[1]] = (_SHIFT, frozenset((usage,)))
    for character, name in ((" ", "space"), ("\t", "tab"), ("\n", "enter")):
        found[character] = (0, frozenset((_USAGE[name],)))
    return found


CHARACTERS: Final = _characters()
"""Each character that a US keyboard types, and what it takes."""


_LEVELS: Final = (0, 0x02, 0x40, 0x42)
"""Modifiers of a layout's levels."""
_EXTRA: Final = 53
_ALONE: Final = {"^": "\u0302", "`": "\u0300", "~": "\u0303"}
"""The character that a dead key types with a space."""


@cache
def shown(layout: str) -> dict[str, frozenset[Chord]]:
    """The characters on the keys of a layout, dead keys as the marks that they make -> every press of it."""
    found: dict[str, set[Chord]] = {}
    for modifiers, level in zip(_LEVELS, LAYOUTS[layout], strict=False):
        for at, character in enumerate(level):
            found.setdefault(character, set()).add((modifiers, frozenset((0x64 if at == _EXTRA else 4 + at,))))
    del found["\0"]
    return {character: frozenset(chords) for character, chords in found.items()}


def _pressed(character: str, layout: str) -> list[frozenset[Chord]]:
    """The presses that type it, one after the other; of each, those that do."""
    keys = shown(layout)
    if character in keys:
        return [keys[character]]
    parts = " " + _ALONE[character] if character in _ALONE else unicodedata.normalize("NFD", character)
    return [keys[parts[1]], keys[parts[0]]]


def chords_of(action: Action) -> list[frozenset[Chord]]:
    """The chords that ``action`` consists of, one after the other; of each, those that do."""
    match action:
        case TypeText(text=text, layout=""):
            return [frozenset((CHARACTERS[character],)) for character in text]
        case TypeText(text=text, layout=layout):
            return [chords for character in text for chords in _pressed(character, layout)]
        case KeyCombo(keys=keys, layout=layout):
            modifiers = sum(_MODIFIER[key] for key in keys if key in _MODIFIER)
            usages = frozenset(_usage(key, layout) for key in keys if key not in _MODIFIER)
            return [frozenset(((modifiers, usages),))]
    return []


def _usage(key: str, layout: str) -> int:
    """A letter's key is the one that shows it."""
    if layout and "a" <= key <= "z" and len(key) == 1:
        return next(usage for modifiers, usages in shown(layout)[key] if not modifiers for usage in usages)
    return _USAGE[key]


class Typed:
    """The output of a device for one ``action``. ``astray``: something did that is no part of it, or not in its
    turn."""

    def __init__(self, action: Action) -> None:
        self._action = action
        self._wanted = chords_of(action)
        self._chords = 0
        self._last: Chord = (0, frozenset())
        self._down = False
        self._x = 0
        self._y = 0
        self._clicks = 0
        self._button = 0
        self.astray = False

    @property
    def nothing(self) -> bool:
        """Nothing came out at all."""
        return not (self._chords or self._x or self._y or self._clicks or self.astray)

    @property
    def whole(self) -> bool:
        """All of the action came out, and nothing else."""
        if self.astray:
            return False
        match self._action:
            case MouseMove(x=x, y=y):
                return (self._x, self._y) == (x, y)
            case MouseClick():
                return self._clicks == 1
        return self._chords == len(self._wanted) and self._last in self._wanted[-1]

    def keyboard(self, modifiers: int, usages: frozenset[int]) -> None:
        """A keyboard report."""
        if not modifiers and not usages:
            self._down = False
            return
        if not self._down:
            complete = not self._chords or self._last in self._wanted[self._chords - 1]
            self._chords += 1
            self._last = (0, frozenset())
            self.astray = self.astray or not complete or self._chords > len(self._wanted)
        self._down = True
        self._last = (self._last[0] | modifiers, self._last[1] | usages)
        if not self.astray:
            wanted = self._wanted[self._chords - 1]
            self.astray = not any(not self._last[0] & ~one[0] and self._last[1] <= one[1] for one in wanted)

    def mouse(self, buttons: int, x: int, y: int) -> None:
        """A mouse report."""
        self._x += x
        self._y += y
        if buttons and not self._button:
            self._clicks += 1
        self._button = buttons
        match self._action:
            case MouseMove(x=to_x, y=to_y):
                fits = not buttons and _towards(self._x, to_x) and _towards(self._y, to_y)
            case MouseClick(button=button):
                fits = buttons in (0, _BUTTON[button]) and self._clicks <= 1 and not (x or y)
            case _:
                fits = False
        self.astray = self.astray or not fits

    def released(self) -> None:
        """Everything went up."""
        self._down = False
        self._button = 0


def _towards(moved: int, wanted: int) -> bool:
    return 0 <= moved <= wanted or wanted <= moved <= 0
