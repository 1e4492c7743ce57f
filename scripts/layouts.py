"""Write firmware/layouts.py from xkb-data: what each key of a keyboard types under each layout.

    .venv/bin/python -I scripts/layouts.py         (Debian: xkb-data, libxkbcommon0, libx11-data)

libxkbcommon compiles the layouts as X and Wayland use them, and its compose table says what a dead key makes of the
next key. A composed character is taken only where Unicode says the same, and a lone accent only where all systems agree
(^, ` and ~ with a space). Characters that nobody sees, or that look like a space, are left out.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Final

TARGET: Final = Path(__file__).parents[1] / "firmware" / "layouts.py"

NAMES: Final[dict[str, tuple[str, str]]] = {
    "us": ("us", ""), "uk": ("gb", ""), "de": ("de", ""), "fr": ("fr", ""), "es": ("es", ""), "it": ("it", ""),
    "se": ("se", ""), "no": ("no", ""), "dk": ("dk", ""), "fi": ("fi", ""), "ch-de": ("ch", ""), "ch-fr": ("ch", "fr"),
}  # fmt: skip
"""Our name -> layout and variant of xkb-data."""

DEAD: Final = {
    "dead_grave": "\u0300", "dead_acute": "\u0301", "dead_circumflex": "\u0302", "dead_tilde": "\u0303",
    "dead_diaeresis": "\u0308", "dead_abovering": "\u030a", "dead_cedilla": "\u0327",
}  # fmt: skip
"""Dead key -> the combining character that stands for it in the tables."""
ALONE: Final = {"\u0302": "^", "\u0300": "`", "\u0303": "~"}
"""Dead key -> what it types with a space, on every system."""
COMPOSED_MAX: Final = "\u00ff"
"""Compositions of dead keys are offered up to this code point: beyond it, systems differ."""

# The keyboard page's usages from 04 to 38, then 64, as keys of Linux (linux/input-event-codes.h).
_LINUX: Final = (
    30, 48, 46, 32, 18, 33, 34, 35, 23, 36, 37, 38, 50, 49, 24, 25, 16, 19, 31, 20, 22, 47, 17, 45, 21, 44,
    2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 28, 1, 14, 15, 57, 12, 13, 26, 27, 43, 43, 39, 40, 41, 51, 52, 53, 86,
)  # fmt: skip
_ENTER, _TAB, _DOUBLE, _EXTRA = 0x28 - 4, 0x2B - 4, 0x32 - 4, 53
_X: Final = 8
"""X counts keys from 8."""
_NONE: Final = "\0"
_ESCAPED: Final = {"\0": "\\x00", "\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"}
MARKS: Final = frozenset(DEAD.values())


class _Rules(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in ("rules", "model", "layout", "variant", "options")]


class Xkb:
    """libxkbcommon."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libxkbcommon.so.0")
        for name in ("context_new", "keymap_new_from_names", "compose_table_new_from_locale", "compose_state_new"):
            getattr(self._library, f"xkb_{name}").restype = ctypes.c_void_p
        self._context = ctypes.c_void_p(self._library.xkb_context_new(0))
        table = self._library.xkb_compose_table_new_from_locale(self._context, b"en_US.UTF-8", 0)
        if not table:
            sys.exit("there is no compose table: apt-get install libx11-data")
        self._compose = ctypes.c_void_p(self._library.xkb_compose_state_new(ctypes.c_void_p(table), 0))

    def keymap(self, layout: str, variant: str) -> ctypes.c_void_p:
        """The layout, on a keyboard with 105 keys."""
        rules = _Rules(b"evdev", b"pc105", layout.encode(), variant.encode(), b"")
        keymap = self._library.xkb_keymap_new_from_names(self._context, ctypes.byref(rules), 0)
        if not keymap:
            sys.exit(f"there is no layout {layout}({variant}): apt-get install xkb-data")
        return ctypes.c_void_p(keymap)

    def symbol(self, keymap: ctypes.c_void_p, key: int, level: int) -> int:
        """The key's symbol on this level; 0 for none."""
        levels: int = self._library.xkb_keymap_num_levels_for_key(keymap, key, 0)
        symbols = ctypes.POINTER(ctypes.c_uint32)()
        count = self._library.xkb_keymap_key_get_syms_by_level(keymap, key, 0, level, ctypes.byref(symbols))
        return symbols[0] if level < levels and count == 1 else 0

    def name(self, symbol: int) -> str:
        """The symbol's name."""
        text = ctypes.create_string_buffer(64)
        self._library.xkb_keysym_get_name(symbol, text, 64)
        return text.value.decode()

    def character(self, symbol: int) -> str:
        """The character that the key types by itself; NUL for none."""
        return chr(self._library.xkb_keysym_to_utf32(symbol))

    def composed(self, *symbols: int) -> str:
        """The text that these type, one after the other; "" where they compose nothing."""
        self._library.xkb_compose_state_reset(self._compose)
        for symbol in symbols:
            self._library.xkb_compose_state_feed(self._compose, symbol)
        text = ctypes.create_string_buffer(16)
        self._library.xkb_compose_state_get_utf8(self._compose, text, 16)
        return text.value.decode() if self._library.xkb_compose_state_get_status(self._compose) == 2 else ""


def levels(xkb: Xkb, name: str) -> list[str]:
    """The layout's four levels: plain, Shift, AltGr, both."""
    keymap = xkb.keymap(*NAMES[name])
    found = []
    for level in range(4):
        text = ""
        for at, key in enumerate(_LINUX):
            symbol = xkb.symbol(keymap, key + _X, level)
            text += _shown(xkb, name, at, level, symbol)
        found.append(text.rstrip(_NONE))
    return [text for text in found if text]


def _shown(xkb: Xkb, name: str, at: int, level: int, symbol: int) -> str:
    if at in (_ENTER, _TAB):
        return {_ENTER: "\n", _TAB: "\t"}[at] if level == 0 else _NONE
    if at == _DOUBLE or (at == _EXTRA and name == "us"):  # the key of 31 once more; a US keyboard has none there
        return _NONE
    dead = DEAD.get(xkb.name(symbol))
    if dead is not None:
        return dead
    character = xkb.character(symbol)
    seen = character == " " or unicodedata.category(character)[0] not in "ZCM"
    return character if seen else _NONE


def composed(xkb: Xkb) -> str:
    """Triples: a character, the dead key and the letter that compose it, where compose table and Unicode agree."""
    symbols = {mark: symbol for symbol in range(0xFE50, 0xFE60) if (mark := DEAD.get(xkb.name(symbol)))}
    found = ""
    for code in range(0xC0, ord(COMPOSED_MAX) + 1):
        parts = unicodedata.normalize("NFD", chr(code))
        if len(parts) == 2 and parts[1] in symbols and xkb.composed(symbols[parts[1]], ord(parts[0])) == chr(code):
            found += chr(code) + parts[1] + parts[0]
    for mark, character in ALONE.items():
        if xkb.composed(symbols[mark], ord(" ")) != character:
            sys.exit(f"the compose table makes no {character} of its dead key and a space")
        found += character + mark + " "
    return found


def written(text: str) -> str:
    """A literal that shows what can be seen."""
    return '"' + "".join(_ESCAPED.get(one) or (f"\\u{ord(one):04x}" if one in MARKS else one) for one in text) + '"'


def main() -> None:
    """Write the file."""
    version = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", "xkb-data"], check=True, capture_output=True, text=True
    ).stdout
    xkb = Xkb()
    lines = [
        '"""The characters of each keyboard layout (scripts/layouts.py, from xkb-data ' + version + ').',
        "",
        "Of each layout: what the keys with the usages 04 to 38, then 64, type plain, with Shift, with AltGr, both;",
        'NUL for nothing, a combining character for a dead key."""',
        "",
        "# ruff: noqa: E501, RUF001",
        "",
        f'SOURCE = "xkb-data {version}"',
        "",
        f"COMPOSED = {written(composed(xkb))}",
        '"""Triples: a character, the dead key and the next key that compose it."""',
        "",
        "LAYOUTS = {",
    ]  # fmt: skip
    for name in NAMES:
        lines += [f'    "{name}": (', *(f"        {written(level)}," for level in levels(xkb, name)), "    ),"]
    TARGET.write_text("\n".join([*lines, "}", ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
