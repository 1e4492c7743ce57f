"""How what stands in events is told in a session log: on one line, bounded, and nothing hidden in it; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from pmagent.contracts.pla import NOBODY, Action, KeyCombo, MouseClick, MouseMove, TypeText, action_type
from pmagent.events.event import Event
from pmagent.projections.core.markdown import cut, visible

SUMMARY_CHARS: Final = 500
MESSAGE_CHARS: Final = 1_000
WORD_CHARS: Final = 200
NUMBER_MAX: Final = 2**53 - 1

_ID: Final = re.compile(r"[A-Za-z0-9_-]{8,64}", re.ASCII)
_OPERATOR: Final = re.compile(r"[A-Za-z0-9_-]{2,64}", re.ASCII)


def words(text: str, size: int = MESSAGE_CHARS) -> str:
    """The text with every character to be seen, of at most ``size`` characters."""
    return cut(visible(cut(text, size)), size)


def number(count: int) -> int:
    """A number as every reader of JSON takes it exactly: a device may tell any."""
    return max(-NUMBER_MAX, min(count, NUMBER_MAX))


def listed(texts: Iterable[str], size: int = MESSAGE_CHARS) -> str:
    """Several texts as one."""
    return words("; ".join(texts), size)


def operator(name: str) -> str:
    """An operator's id; that of nobody for what cannot be one."""
    return name if _OPERATOR.fullmatch(name) else NOBODY


def known_id(name: str) -> str:
    """A proposal's or an execution's id; "" for what cannot be one."""
    return name if _ID.fullmatch(name) else ""


def log_reference(event: Event, sum: str) -> dict[str, Any]:
    """The tie of an entry to the log: the event's type, its position, and the sum of its line."""
    return {"event": event.type, "position": event.position, "sum": sum}


def action_summary(action: Action, chars: int, *, masked: bool) -> dict[str, Any]:
    """The payload to be typed, as the event has it."""
    summary: dict[str, Any] = {"action_type": action_type(action), "payload_summary": _summary(action, chars)}
    return {**summary, "masked": True} if masked else summary


def _summary(action: Action, chars: int) -> str:
    match action:
        case TypeText(text=text):
            end = f" ({chars} characters)"
            quoted = json.dumps(text[:SUMMARY_CHARS], ensure_ascii=False)
            quoted = "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in quoted)
            return f"text: {cut(quoted, SUMMARY_CHARS - 6 - len(end))}{end}"
        case KeyCombo(keys=keys):
            return words(f"keys: {'+'.join(keys)}", SUMMARY_CHARS)
        case MouseMove(x=x, y=y):
            return words(f"move: {x} {y}", SUMMARY_CHARS)
        case MouseClick(button=button):
            return words(f"click: {button}", SUMMARY_CHARS)
