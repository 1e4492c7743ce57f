"""Actions: the check of an ``action_execute`` document, and the reports of its action.

Reports are computed one at a time, by their number: a long text needs no more room than its characters.
"""

from .clock import is_time
from .document import Unreadable, read, write
from .layout import MODIFIERS, key, letters, presses
from .layouts import LAYOUTS
from .refusal import WORD, Refused, closed, integer_of, is_digest, is_id, made_of, object_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .shapes import Report, Sha256

TEXT_MAX = 1024
KEYS_MAX = 6
COORDINATE_MIN, COORDINATE_MAX = -1000, 5000
DELAY_MS = 100
STEP_MAX = 127
"""The furthest that one mouse report moves."""

BUTTONS = {"left": 1, "right": 2, "middle": 4}


class Action:
    """An action that may be typed: ``of`` reports. ``letters``: Caps Lock would change what comes out."""

    of = 0
    letters = False

    def report(self, number: int) -> "Report":
        """The report with this number, from 0."""
        raise NotImplementedError


class Text(Action):
    """Each press: its keys down, all keys up. ``strokes``: modifiers and key of each."""

    def __init__(self, strokes: bytearray, *, letters: bool) -> None:
        self._strokes = strokes
        self.of = len(strokes)
        self.letters = letters

    def report(self, number: int) -> "Report":
        """See Action."""
        if number % 2:
            return "keyboard", 0, ()
        return "keyboard", self._strokes[number], (self._strokes[number + 1],)


class Keys(Action):
    """All keys down, all keys up."""

    of = 2

    def __init__(self, modifiers: int, keys: list[int]) -> None:
        self._modifiers = modifiers
        self._keys = tuple(keys)

    def report(self, number: int) -> "Report":
        """See Action."""
        return ("keyboard", self._modifiers, self._keys) if number == 0 else ("keyboard", 0, ())


class Move(Action):
    """As many steps as the further of both ways needs."""

    def __init__(self, x: int, y: int) -> None:
        self._x, self._y = x, y
        self.of = max(1, (max(abs(x), abs(y)) + STEP_MAX - 1) // STEP_MAX)

    def report(self, number: int) -> "Report":
        """See Action."""
        return "mouse", 0, _part(self._x, number), _part(self._y, number)


class Click(Action):
    """The button down, the button up."""

    of = 2

    def __init__(self, button: int) -> None:
        self._button = button

    def report(self, number: int) -> "Report":
        """See Action."""
        return "mouse", self._button if number == 0 else 0, 0, 0


def _part(way: int, number: int) -> int:
    """The rest of ``way`` after ``number`` steps, limited to one step."""
    left = max(0, abs(way) - number * STEP_MAX)
    return min(left, STEP_MAX) * (-1 if way < 0 else 1)


def check(
    data: bytes, execution_id: str, digest: str, sha256: "Sha256", *, undeclared: bool = True, pointer: bool = True
) -> Action:
    """The action of the ``action_execute`` document whose JSON is ``data``.

    ``execution_id`` and ``digest`` are what the request says it is; ``sha256`` makes hex of bytes. ``undeclared``: what
    names no layout is typed as on a US keyboard; ``pointer``: there is a mouse. Raises Refused with SCHEMA, ORDER,
    MODE, BOUNDS, UNTYPABLE, APPROVAL or DIGEST.
    """
    try:
        document = read(data)
    except Unreadable:
        raise Refused("SCHEMA", "the document is no compact ASCII JSON") from None
    if not isinstance(document, dict):
        raise Refused("SCHEMA", "the document is no object")
    _envelope(document, execution_id)
    kind, payload = text_of(document, "action_type", "SCHEMA"), object_of(document, "payload", "SCHEMA")
    if kind not in _READERS:
        raise Refused("SCHEMA", "there is no such action_type")
    action = _READERS[kind](payload)
    if not undeclared and kind in _BY_LAYOUT and "layout" not in payload:
        raise Refused("UNTYPABLE", "the machine's layout is not declared")
    if not pointer and kind not in _BY_LAYOUT:
        raise Refused("UNTYPABLE", "this device is a boot keyboard, and has no pointer")
    own = sha256(write({"action_type": kind, "payload": payload}).encode())
    approved = _approval(document)
    if digest != own or approved not in ("", own):
        raise Refused("DIGEST", "what was handed over is not what was approved")
    return action


def _envelope(document: dict[str, object], execution_id: str) -> None:
    required = ("execution_id", "proposal_id", "timestamp", "mode", "action_type", "payload", "safety_bounds")
    closed(document, required, ("operator_approval",), "SCHEMA")
    for name in ("execution_id", "proposal_id"):
        if not is_id(text_of(document, name, "SCHEMA")):
            raise Refused("SCHEMA", f"{name} is no id")
    if document["execution_id"] != execution_id:
        raise Refused("ORDER", "the document is that of another execution")
    if not is_time(text_of(document, "timestamp", "SCHEMA")):
        raise Refused("SCHEMA", "timestamp is no time")
    if text_of(document, "mode", "SCHEMA") != "EXECUTE":
        raise Refused("MODE", "mode is not EXECUTE")
    bounds = object_of(document, "safety_bounds", "SCHEMA")
    closed(bounds, ("max_text_length", "min_action_delay_ms"), (), "SCHEMA")
    if integer_of(bounds, "max_text_length", "SCHEMA") != TEXT_MAX:
        raise Refused("BOUNDS", f"max_text_length is not {TEXT_MAX}")
    if integer_of(bounds, "min_action_delay_ms", "SCHEMA") != DELAY_MS:
        raise Refused("BOUNDS", f"min_action_delay_ms is not {DELAY_MS}")


def _approval(document: dict[str, object]) -> str:
    """The digest that the approval names, or ""."""
    approval = object_of(document, "operator_approval", "APPROVAL")
    closed(approval, ("decision_timestamp", "operator_id"), ("digest",), "APPROVAL")
    if not is_time(text_of(approval, "decision_timestamp", "APPROVAL")):
        raise Refused("APPROVAL", "decision_timestamp is no time")
    if not made_of(text_of(approval, "operator_id", "APPROVAL"), WORD, 2, 64):
        raise Refused("APPROVAL", "operator_id is no id")
    if "digest" not in approval:
        return ""
    digest = text_of(approval, "digest", "APPROVAL")
    if not is_digest(digest):
        raise Refused("APPROVAL", "digest is no SHA-256")
    return digest


def _layout(payload: dict[str, object]) -> str:
    """The layout that the payload names, else that of a US keyboard."""
    layout = text_of(payload, "layout", "SCHEMA") if "layout" in payload else "us"
    if layout not in LAYOUTS:
        raise Refused("SCHEMA", "there is no such layout")
    return layout


def _text(payload: dict[str, object]) -> Action:
    closed(payload, ("text",), ("layout",), "SCHEMA")
    layout = _layout(payload)
    text = text_of(payload, "text", "SCHEMA")
    if not text:
        raise Refused("SCHEMA", "the text is empty")
    if len(text) > TEXT_MAX:
        raise Refused("BOUNDS", f"the text has {len(text)} characters, not at most {TEXT_MAX}")
    return keystrokes(text, layout)


def keystrokes(text: str, layout: str) -> Text:
    """The action that types ``text``. Raises Refused with UNTYPABLE."""
    strokes = bytearray()
    for at, character in enumerate(text):
        found = presses(character, layout)
        if found is None:
            what = f"character {at + 1} is U+{ord(character):04X}, which the layout {layout} cannot type"
            raise Refused("UNTYPABLE", what)
        for stroke in found:
            strokes.extend(bytes(stroke))
    return Text(strokes, letters=letters(text, layout))


def _keys(payload: dict[str, object]) -> Action:
    closed(payload, ("keys",), ("layout",), "SCHEMA")
    layout = _layout(payload)
    names = payload["keys"]
    if not isinstance(names, list) or not names:
        raise Refused("SCHEMA", "keys is no list with keys")
    modifiers, keys = 0, []
    for at, name in enumerate(names):
        if not isinstance(name, str):
            raise Refused("SCHEMA", f"key {at + 1} is no text")
        if name in names[:at]:
            raise Refused("SCHEMA", f"key {at + 1} is named twice")
        if name in MODIFIERS:
            modifiers |= MODIFIERS[name]
            continue
        usage = key(name, layout)
        if usage is None:
            raise Refused("UNTYPABLE", f"key {at + 1} is none of this keyboard's")
        keys.append(usage)
    if len(names) > KEYS_MAX or (len(names) > 1 and not keys):
        raise Refused("BOUNDS", f"at most {KEYS_MAX} keys, and one of them no modifier unless it stands alone")
    return Keys(modifiers, keys)


def _move(payload: dict[str, object]) -> Action:
    closed(payload, ("x", "y"), (), "SCHEMA")
    x, y = integer_of(payload, "x", "SCHEMA"), integer_of(payload, "y", "SCHEMA")
    for name, value in (("x", x), ("y", y)):
        if not COORDINATE_MIN <= value <= COORDINATE_MAX:
            raise Refused("BOUNDS", f"{name} is not {COORDINATE_MIN} to {COORDINATE_MAX}")
    return Move(x, y)


def _click(payload: dict[str, object]) -> Action:
    closed(payload, ("button",), (), "SCHEMA")
    button = text_of(payload, "button", "SCHEMA")
    if button not in BUTTONS:
        raise Refused("SCHEMA", "the button is none of left, right, middle")
    return Click(BUTTONS[button])


_BY_LAYOUT = ("TYPE_TEXT", "KEY_COMBO")
_READERS = {"TYPE_TEXT": _text, "KEY_COMBO": _keys, "MOUSE_MOVE": _move, "MOUSE_CLICK": _click}
