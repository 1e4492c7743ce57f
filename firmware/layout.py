"""Which keys a character or a key's name is (HID Usage Tables 1.12, chapter 10), under a layout."""

from .layouts import COMPOSED, LAYOUTS

CTRL, SHIFT, ALT, GUI, ALTGR = 1, 2, 4, 8, 64
"""Bits of a keyboard report's first byte: the left ones, and the right Alt."""

MODIFIERS = {"ctrl": CTRL, "shift": SHIFT, "alt": ALT, "gui": GUI}

_FIRST = 0x04
_EXTRA = 53
"""Where the table has the key that ISO keyboards have beside the left Shift."""
_EXTRA_USAGE = 0x64
_LEVELS = (0, SHIFT, ALTGR, SHIFT | ALTGR)
_NAMED = {
    "enter": 0x28, "escape": 0x29, "backspace": 0x2A, "tab": 0x2B, "space": 0x2C,
    "insert": 0x49, "home": 0x4A, "page_up": 0x4B, "delete": 0x4C, "end": 0x4D, "page_down": 0x4E,
    "right": 0x4F, "left": 0x50, "down": 0x51, "up": 0x52,
}  # fmt: skip
_F1 = 0x3A
_DIGITS = "1234567890"
_ONE = 0x1E


def is_dead(character: str) -> bool:
    """Whether it stands for a dead key in the tables."""
    return "\u0300" <= character <= "\u036f"


def _stroke(character: str, layout: str) -> "tuple[int, int] | None":
    """Modifiers and key whose entry in the table is ``character``: without AltGr, and on a key that every keyboard has,
    where that can be."""
    levels = LAYOUTS[layout]
    for first in (0, 2):
        for extra in (False, True):
            for at in range(first, min(first + 2, len(levels))):
                level = levels[at]
                found = level.find(character, _EXTRA) if extra else level.find(character, 0, _EXTRA)
                if found >= 0:
                    return _LEVELS[at], _EXTRA_USAGE if extra else _FIRST + found
    return None


def presses(character: str, layout: str = "us") -> "tuple[tuple[int, int], ...] | None":
    """Modifiers and key of each press that types ``character``: one, or two where a dead key comes first. None when
    nothing does."""
    if len(character) != 1 or character == "\0" or is_dead(character):
        return None
    found = _stroke(character, layout)
    if found is not None:
        return (found,)
    at = COMPOSED.find(character)
    while at >= 0 and at % 3:
        at = COMPOSED.find(character, at + 1)
    if at < 0:
        return None
    dead, letter = _stroke(COMPOSED[at + 1], layout), _stroke(COMPOSED[at + 2], layout)
    return None if dead is None or letter is None else (dead, letter)


def key(name: str, layout: str = "us") -> int | None:
    """The usage of the key of that name that is no modifier; None when there is none. A letter is the key that types
    it; the digits are the row's, whatever it types without Shift."""
    if name in _NAMED:
        return _NAMED[name]
    if len(name) == 1:
        if name in _DIGITS:
            return _ONE + _DIGITS.find(name)
        found = _stroke(name, layout) if "a" <= name <= "z" else None
        return found[1] if found and found[0] == 0 else None
    for number in range(1, 13):
        if name == f"f{number}":
            return _F1 + number - 1
    return None


def letters(text: str, layout: str = "us") -> bool:
    """Whether Caps Lock could change ``text``: on a US keyboard the letters, on others also digits and marks."""
    return text.lower() != text.upper() if layout == "us" else text.strip() != ""
