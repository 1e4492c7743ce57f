r"""Goals that state an action literally; pure (docs/design.md §16.10; docs/pla.md, Goals).

======================  =====================================================================================
``type: TEXT``          types TEXT as it stands, trailing blanks included; one blank behind the colon is left out
``type: "TEXT"``        the same, with ``\n``, ``\t``, ``\"`` and ``\\`` for newline, tab, quote and backslash
``keys: ctrl+alt+t``    presses these keys together; names as in ``pmagent.contracts.pla.KEYS``
``move: 10 -5``         moves the pointer by 10 to the right and 5 up
``click: left``         presses a button: left, right, middle
======================  =====================================================================================

One word for one thing: there are no aliases, but the error for another well-known word names ours. The result is no
more than syntax; whether it may be typed is for ``pmagent.contracts.pla.objections`` to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from pmagent.contracts.pla import KEYS, Action, KeyCombo, MouseClick, MouseMove, TypeText, Unfit
from pmagent.events.errors import PmagentError

BUTTONS: Final = ("left", "right", "middle")

_GOAL: Final = re.compile(r"([A-Za-z_]{1,20})[ \t]*:", re.ASCII)
_OFFSET: Final = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)
_BLANK: Final = " \t"
_BLANKS: Final = re.compile(r"[ \t]+")
_ESCAPES: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}

_OTHER_WORDS: Final = {
    "control": "ctrl", "ctl": "ctrl", "strg": "ctrl", "win": "gui", "windows": "gui", "super": "gui", "cmd": "gui",
    "command": "gui", "meta": "gui", "option": "alt", "opt": "alt", "altgr": "alt", "return": "enter", "esc": "escape",
    "pgup": "page_up", "pageup": "page_up", "pgdn": "page_down", "pagedown": "page_down", "del": "delete",
    "ins": "insert", "bksp": "backspace", "spacebar": "space", "arrow_up": "up", "arrow_down": "down",
    "arrow_left": "left", "arrow_right": "right", "write": "type", "text": "type", "key": "keys", "press": "keys",
    "mouse": "move",
}  # fmt: skip
"""Other well-known words -> the word used here."""


class GoalError(PmagentError, exit_code=2):
    """A goal begins as one that states an action, and does not state one. ``message`` says where it fails and quotes
    nothing but names; ``kind`` is the row of the specification's table of violations."""

    def __init__(self, message: str, hint: str = "", kind: Unfit = "schema_validation") -> None:
        super().__init__(message, hint)
        self.kind: Unfit = kind


def parse_goal(goal: str) -> Action | None:
    """The action that ``goal`` states, its fields as they were written; None where it states none, and only a model
    can make something of it. Raises GoalError."""
    found = _GOAL.match(goal)
    if found is None:
        return None
    word, rest = found[1], goal[found.end() :]
    read = _READERS.get(word)
    if read is not None and goal[len(word)] == ":":
        return read(rest)
    meant = word if read is not None else nearest(word, _READERS)
    if meant:
        message = f"the goal begins with {word!a}, which is none of {', '.join(_READERS)}"
        if read is not None:
            message = f"there is a blank between {word!a} and its colon"
        raise GoalError(message, f"did you mean {meant}: …?")
    return None


def nearest(word: str, known: Iterable[str]) -> str:
    """The one of ``known`` that ``word`` was perhaps meant for: in another case, under another well-known name, or one
    slip of a finger away; "" where there is none."""
    low = word.lower()
    names = list(known)
    for guess in (low, _OTHER_WORDS.get(low, "")):
        if guess in names:
            return guess
    return next((name for name in names if len(name) > 2 and _is_one_slip(low, name)), "")


def _is_one_slip(one: str, other: str) -> bool:
    """Whether a letter too many, too few, a wrong one, or two that changed places make the difference."""
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    rests = (one[at + 1 :], other[at:]), (one[at:], other[at + 1 :]), (one[at + 1 :], other[at + 1 :])
    changed = one[at : at + 2] == other[at : at + 2][::-1] and one[at + 2 :] == other[at + 2 :]
    return changed or any(a == b for a, b in rests)


def _type(rest: str) -> TypeText:
    text = rest.removeprefix(" ")
    return TypeText(text=_unquoted(text) if text.startswith('"') else text)


def _unquoted(text: str) -> str:
    """The text in double quotes, its escapes resolved."""
    typed: list[str] = []
    at = 1
    while at < len(text):
        character = text[at]
        if character == '"':
            if at + 1 < len(text):
                what = f"the quoted text ends at character {at + 1} of {len(text)}"
                raise GoalError(what, 'write \\" for a quote within it, and put all of the text into quotes')
            return "".join(typed)
        if character == "\\":
            escaped = _ESCAPES.get(text[at + 1 : at + 2])
            if escaped is None:
                raise GoalError(
                    f"character {at + 1} of the quoted text is a backslash that begins no escape",
                    'the escapes are \\n, \\t, \\" and \\\\',
                )
            typed.append(escaped)
            at += 2
        else:
            typed.append(character)
            at += 1
    raise GoalError("the text begins with a quote, and no quote ends it", 'write type: "\\"…" to type a quote first')


def _keys(rest: str) -> KeyCombo:
    if not rest.strip(_BLANK):
        raise GoalError("there is no key behind keys:", "keys: ctrl+alt+t", "missing_field")
    keys = [key.strip(_BLANK) for key in rest.split("+")]
    for number, key in enumerate(keys, 1):
        if key in KEYS:
            continue
        where = f"key {number} of {len(keys)}"
        if not key:
            raise GoalError(f"{where} is missing", "keys stand with one + between them: ctrl+alt+t", "missing_field")
        meant = nearest(key, KEYS)
        if meant:
            raise GoalError(f"{where} is {key[:32]!a}, and there is no such key", f"did you mean {meant}?")
        raise GoalError(f"{where} is none that can be pressed", "pmagent pla propose --help names the keys")
    return KeyCombo(keys=keys)


def _move(rest: str) -> MouseMove:
    parts = _BLANKS.split(rest.strip(_BLANK))
    if len(parts) != 2 or not all(_OFFSET.fullmatch(part) for part in parts):
        kind: Unfit = "missing_field" if len(parts) < 2 else "schema_validation"
        raise GoalError("move: wants two whole numbers, to the right and down", "move: 10 -5", kind)
    return MouseMove(x=int(parts[0]), y=int(parts[1]))


def _click(rest: str) -> MouseClick:
    button = rest.strip(_BLANK)
    if button not in BUTTONS:
        meant = nearest(button, BUTTONS)
        hint = f"did you mean {meant}?" if meant else f"click: {', '.join(BUTTONS)}"
        raise GoalError(
            f"the button is none of {', '.join(BUTTONS)}", hint, "schema_validation" if button else "missing_field"
        )
    return MouseClick(button=button)


_READERS: Final[dict[str, Callable[[str], Action]]] = {"type": _type, "keys": _keys, "move": _move, "click": _click}
