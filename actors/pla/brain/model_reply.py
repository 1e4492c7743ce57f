"""How a model's reply is read as a proposal; pure (docs/design.md §16.4, §16.10).

Only what is exactly one action of the contracts, with a rationale, is one: no further field, no list of actions, no
text around it. Everything else is a ``Misfit``, whose text can be told to the model; it is in our words alone, because
it becomes part of decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from pmagent.actors.pla.brain.model_goal import NOTHING, SHAPE_NAME
from pmagent.contracts.model import ModelReplied
from pmagent.contracts.pla import (
    RATIONALE_CHARS_MAX,
    RATIONALE_CHARS_MIN,
    Action,
    KeyCombo,
    MouseClick,
    MouseMove,
    TypeText,
    Unfit,
    declared,
    objections,
)
from pmagent.contracts.strict_json import NotJson, read, strange

REPLY_BYTES_MAX: Final = 16 * 1024
"""A longer reply is none that holds one action."""

FIELDS: Final = ("action_type", "payload", "rationale")

_BLANK: Final = " \t\r\n"


class Misfit(ValueError):
    """A reply is no proposal; its text says why, without quoting it. ``kind``: the row of the table of violations."""

    def __init__(self, text: str, kind: Unfit = "schema_validation") -> None:
        super().__init__(text)
        self.text = text
        self.kind: Unfit = kind


class Proposal(msgspec.Struct, frozen=True):
    """A model's proposal, and why; ``action`` None: it proposes nothing."""

    action: Action | None
    rationale: str


def read_proposal(reply: ModelReplied, layout: str = "") -> Proposal:
    """The proposal that a reply holds: in the arguments of its one call named ``PlaAction``, or as JSON text. Its
    action keeps every bound of the contracts, on a machine with this ``layout``. Raises Misfit."""
    given = _object(reply)
    missing = [name for name in FIELDS if name not in given]
    if missing:
        raise Misfit(f"it lacks {', '.join(missing)}", "missing_field")
    if len(given) > len(FIELDS):
        raise Misfit(f"it has more fields than {', '.join(FIELDS)}")
    rationale = _rationale(given["rationale"])
    action = _action(given["action_type"], given["payload"])
    if action is not None:
        action = declared(action, layout)
        for objection in objections(action):
            raise Misfit(objection.text, objection.kind)
    return Proposal(action, rationale)


def _object(reply: ModelReplied) -> dict[str, Any]:
    """The JSON object that the reply answers with. Raises Misfit."""
    if reply.tool_calls:
        if len(reply.tool_calls) > 1:
            raise Misfit("there is more than one tool call in it, and one action is proposed at a time")
        if reply.tool_calls[0].name != SHAPE_NAME:
            raise Misfit(f"it calls a tool other than {SHAPE_NAME}")
        return _bounded(reply.tool_calls[0].args)
    if reply.finish == "refusal":
        raise Misfit("it is a refusal; an action, or NONE, is needed")
    text = reply.content.strip(_BLANK)
    if not text:
        raise Misfit("it is empty", "missing_field")
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        text = text[text.index("\n") : -3].strip(_BLANK)
    if len(text) > REPLY_BYTES_MAX:
        raise Misfit(_TOO_LONG, "bound_exceeded")
    try:
        given = read(text.encode())
    except (NotJson, UnicodeEncodeError):
        raise Misfit(_CUT_OFF if reply.finish in _CUT else _NO_JSON) from None
    if not isinstance(given, dict):
        raise Misfit("it is JSON, but not one object, and one action is proposed at a time")
    return given


def _bounded(args: dict[str, Any]) -> dict[str, Any]:
    if next(strange(args), None) is not None:
        raise Misfit(_NO_JSON)
    if len(msgspec.json.encode(args)) > REPLY_BYTES_MAX:
        raise Misfit(_TOO_LONG, "bound_exceeded")
    return args


def _rationale(value: object) -> str:
    if not isinstance(value, str):
        raise Misfit("rationale has to be a text")
    text = value.strip(_BLANK)
    if not RATIONALE_CHARS_MIN <= len(text) <= RATIONALE_CHARS_MAX:
        raise Misfit(f"rationale has to be {RATIONALE_CHARS_MIN} to {RATIONALE_CHARS_MAX} characters", "bound_exceeded")
    return text


def _action(action_type: object, payload: object) -> Action | None:
    reader = _READERS.get(action_type) if isinstance(action_type, str) else None
    if reader is None:
        raise Misfit(f"action_type has to be one of {', '.join(_READERS)}")
    fields, make = reader
    if not isinstance(payload, dict) or sorted(payload) != sorted(fields):
        wanted = ", ".join(fields) or "no field"
        raise Misfit(f"the payload of {action_type} has to be an object with {wanted}, and nothing else")
    return make(payload)


def _type_text(payload: dict[str, Any]) -> TypeText:
    if not isinstance(payload["text"], str):
        raise Misfit("text has to be a text")
    return TypeText(text=payload["text"])


def _key_combo(payload: dict[str, Any]) -> KeyCombo:
    keys = payload["keys"]
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise Misfit("keys has to be a list of names of keys")
    return KeyCombo(keys=keys)


def _mouse_move(payload: dict[str, Any]) -> MouseMove:
    if type(payload["x"]) is not int or type(payload["y"]) is not int:
        raise Misfit("x and y have to be integers")
    return MouseMove(x=payload["x"], y=payload["y"])


def _mouse_click(payload: dict[str, Any]) -> MouseClick:
    if not isinstance(payload["button"], str):
        raise Misfit("button has to be a text")
    return MouseClick(button=payload["button"])


_Reader = tuple[tuple[str, ...], Callable[[dict[str, Any]], Action | None]]

_READERS: Final[Mapping[str, _Reader]] = {
    "TYPE_TEXT": (("text",), _type_text),
    "KEY_COMBO": (("keys",), _key_combo),
    "MOUSE_MOVE": (("x", "y"), _mouse_move),
    "MOUSE_CLICK": (("button",), _mouse_click),
    NOTHING: ((), lambda _: None),
}

_CUT: Final = frozenset(("length", "max_tokens", "MAX_TOKENS"))
"""How providers say that a reply has ended because it may not be longer."""

_CUT_OFF: Final = "it was cut off at the length that a reply may have; say it in fewer words"
_TOO_LONG: Final = f"it is longer than {REPLY_BYTES_MAX} bytes"
_NO_JSON: Final = "it is not one JSON object and nothing else, each key in it once"
