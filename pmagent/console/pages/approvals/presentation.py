"""A proposal as a page shows it: in words, as bytes, and beside others; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from pmagent.actors.pla.switch import said
from pmagent.pla.consequences import characters_typed
from pmagent.pla.risk import TIERS, risk
from pmagent.pla.words import steps

LIKE_MAX: Final = 8
TITLE_CHARS: Final = 48
"""So much of a text's first line is in a heading; the whole text stands below it."""


def headline(document: dict[str, Any]) -> str:
    """The action in a few words that hold nothing of the typed text."""
    if document["action_type"] == "TYPE_TEXT":
        return f"Type {document['chars']} character{'' if document['chars'] == 1 else 's'}"
    return worded({"action_type": document["action_type"], **document["payload"]})


def worded(action: Mapping[str, Any]) -> str:
    """An action but a text, as an event holds it, in words; of one that is none, its fields."""
    match action:
        case {"action_type": "KEY_COMBO", "keys": [*keys]}:
            return f"Press {' + '.join(map(str, keys))}"
        case {"action_type": "MOUSE_MOVE", "x": int(x), "y": int(y)}:
            return f"Move the pointer {steps(x, y)}"
        case {"action_type": "MOUSE_CLICK", "button": button}:
            return f"Click {button}"
    return ", ".join(f"{name} {value}" for name, value in action.items() if name != "text")


def title(document: dict[str, Any]) -> str:
    """The action in the words of its page's heading: of a text its first line, as the log may hold it."""
    where = f" on {document['machine']}" if document.get("machine") else ""
    if document["action_type"] != "TYPE_TEXT":
        return f"{headline(document)}{where}"
    line, enter, more = str(document["payload"]["text"]).partition("\n")
    cut = line[:TITLE_CHARS]
    return f"Type {cut}{'…' if cut != line else '⏎' if enter else ''}{' …' if more and cut == line else ''}{where}"


def runs(text: str) -> str:
    """How often a text presses Enter, in the words of what that does; "" where it does not."""
    times = text.count("\n")
    if not times:
        return ""
    how_often, lines = ("once", "1 line") if times == 1 else (f"{times} times", f"{times} lines")
    return f"Presses Enter {how_often}: runs or sends {lines}"


class Progress(msgspec.Struct, frozen=True):
    """How far an execution is: ``done`` of ``of`` reports were sent, by which ``chars`` characters of a text were
    typed (0 of anything else)."""

    done: int
    of: int
    chars: int


def progress(document: dict[str, Any], done: int, of: int) -> Progress | None:
    """How far it is, after so many reports; None where none were. A character has two, and is typed with the first."""
    if not done:
        return None
    return Progress(done, of, characters_typed(document, done))


def content(document: dict[str, Any]) -> str:
    """Exactly what is done, as text: of a text its characters, else the keys, the way or the button."""
    payload = document.get("plain") or document["payload"]
    match document["action_type"]:
        case "TYPE_TEXT":
            return str(payload["text"])
        case "KEY_COMBO":
            return "+".join(payload["keys"])
        case "MOUSE_MOVE":
            return f"x {payload['x']:+d}, y {payload['y']:+d}: {steps(payload['x'], payload['y'])}"
    return str(payload["button"])


def by_risk(documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Open proposals in the order in which they are to be looked at: by risk, then the oldest first."""
    return sorted(documents, key=lambda one: (TIERS.index(risk(one).tier), one["proposed_at"]))


class Notice(msgspec.Struct, frozen=True):
    """How a proposal stands, for people: ``kind`` as notices have it, a title, and a text."""

    kind: str
    title: str
    text: str


_LOOK: Final = "Look at the machine's screen: part of it was typed. What is missing has to be proposed anew."
_LOOK_NOW: Final = (
    "Look at the machine's screen now: it may be nothing, part of it, or all. It is never typed again by itself; what "
    "is missing has to be proposed anew."
)
_SENT: Final = "The device sent all of it to the machine. Only the machine's screen shows the effect."

_ENDS: Final = {
    "executed": ("good", "It was typed", _SENT),
    "recorded": ("info", "Approved, and recorded", "Nothing is typed by it."),
    "aborted": ("bad", "It ended in the middle", _LOOK),
    "not_executed": ("warn", "Nothing was typed", ""),
    "unknown": ("bad", "Nobody can tell how much was typed", _LOOK_NOW),
    "rejected": ("info", "Rejected", ""),
    "expired": ("warn", "Expired", "Nothing was typed. It can be proposed again."),
    "withdrawn": ("warn", "Withdrawn", "Nothing was typed."),
}


_DOING: Final = {"TYPE_TEXT": "it is being typed", "MOUSE_MOVE": "the pointer is being moved"}

_ENDED_BY: Final = {
    "KILLED": "The kill switch ended it",
    "DISARMED": "It was disarmed while it typed",
    "LEASE": "The device heard nothing from the daemon any more, and ended it",
    "LINK": "The line was lost while it typed",
    "USB": "The machine took no more of it",
    "CAPS_LOCK": "Caps Lock came on while it typed",
    "MEMORY": "The device had no room for it",
    "WATCHDOG": "The device's firmware failed",
}
"""The device's word for why it ended in the middle (docs/hid-protocol.md) -> what an operator wants to know first."""


def stands(document: dict[str, Any], code: str = "") -> Notice | None:
    """How it stands, if it is not open; an outcome that nobody can tell in strong words, an end in the middle with what
    the device gave as its ``code``."""
    if document["stands"] == "open":
        return None
    if document["stands"] == "executing":
        doing = _DOING.get(document["action_type"], "it is being carried out")
        return Notice("info", f"Approved: {doing}", "Stop typing ends it; so does the switch on the device.")
    kind, title, text = _ENDS.get(document["outcome"], ("warn", str(document["outcome"]), ""))
    if document["outcome"] == "aborted":
        title = _ENDED_BY.get(code, title)
    by = f" by {document['decided_by']}" if document["decided_by"] and document["outcome"] in _DECISIONS else ""
    told = said(document["why"])
    why = f"{told[:1].upper()}{told[1:]}. " if told else ""
    if document["outcome"] == "executed":
        title, why = _DONE.get(document["action_type"], "It was done"), ""
    return Notice(kind, f"{title}{by}", f"{why}{text}".strip())


_DECISIONS: Final = ("recorded", "rejected")
_DONE: Final = {
    "TYPE_TEXT": "It was typed", "KEY_COMBO": "The keys were pressed", "MOUSE_MOVE": "The pointer was moved",
    "MOUSE_CLICK": "The button was clicked",
}  # fmt: skip


class Similar(msgspec.Struct, frozen=True):
    """An earlier proposal that resembles one: ``how``, and its document."""

    how: str
    document: dict[str, Any]


def alike(document: dict[str, Any], others: Sequence[dict[str, Any]]) -> list[Similar]:
    """Earlier proposals of the same bytes, else of the same beginning, newest first; those that were decided on, or are
    over. Masked texts are alike only by their digest: the log holds no more of them."""
    found: list[tuple[int, Similar]] = []
    for other in others:
        if other["proposal_id"] == document["proposal_id"] or other["stands"] == "open":
            continue
        if other["position"] > document["position"] or other["action_type"] != document["action_type"]:
            continue
        if other["digest"] == document["digest"]:
            found.append((0, Similar("the same bytes", other)))
        elif not (document["masked"] or other["masked"]) and _beginning(other) == _beginning(document) != "":
            found.append((1, Similar(f"also begins with {_beginning(document)}", other)))
    found.sort(key=lambda one: (one[0], -one[1].document["position"]))
    return [like for _, like in found[:LIKE_MAX]]


def _beginning(document: dict[str, Any]) -> str:
    """The first word of a text: mostly the program that it calls."""
    if document["action_type"] != "TYPE_TEXT":
        return ""
    words = document["payload"]["text"].split(maxsplit=1)
    return words[0][:40] if words else ""
