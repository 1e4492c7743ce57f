"""A US keyboard: which keys a character or a key's name is (HID Usage Tables 1.12, chapter 10)."""

CTRL, SHIFT, ALT, GUI = 1, 2, 4, 8
"""Bits of a keyboard report's first byte: the left ones."""

MODIFIERS = {"ctrl": CTRL, "shift": SHIFT, "alt": ALT, "gui": GUI}

# Usages 04 to 38 in their order, without and with Shift; NUL stands where a key types nothing that a text may hold.
_PLAIN = "abcdefghijklmnopqrstuvwxyz1234567890\n\0\0\t -=[]\\\0;'`,./"
_SHIFTED = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ!@#$%^&*()\0\0\0\0\0_+{}|\0:"~<>?'
_FIRST = 0x04

_NAMED = {
    "enter": 0x28, "escape": 0x29, "backspace": 0x2A, "tab": 0x2B, "space": 0x2C,
    "insert": 0x49, "home": 0x4A, "page_up": 0x4B, "delete": 0x4C, "end": 0x4D, "page_down": 0x4E,
    "right": 0x4F, "left": 0x50, "down": 0x51, "up": 0x52,
}  # fmt: skip
_F1 = 0x3A


def stroke(character: str) -> tuple[int, int] | None:
    """Modifiers and key that type ``character``; None when nothing does."""
    if character != "\0":
        at = _PLAIN.find(character)
        if at >= 0:
            return 0, _FIRST + at
        at = _SHIFTED.find(character)
        if at >= 0:
            return SHIFT, _FIRST + at
    return None


def key(name: str) -> int | None:
    """The usage of the key of that name that is no modifier; None when there is none."""
    if name in _NAMED:
        return _NAMED[name]
    if len(name) == 1:
        found = stroke(name)
        return found[1] if found and found[0] == 0 and name in "abcdefghijklmnopqrstuvwxyz0123456789" else None
    for number in range(1, 13):
        if name == f"f{number}":
            return _F1 + number - 1
    return None


def letters(text: str) -> bool:
    """Whether Caps Lock would change ``text``."""
    return text.lower() != text.upper()
