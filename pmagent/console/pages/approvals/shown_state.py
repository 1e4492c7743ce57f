"""The state that a form showed an operator, carried by the form itself, and its difference from now; pure.

It grants nothing: an approval is bound to the digest, and the mode, which the daemon compares. It is there so that a
decision that came too late, or is about something else, is answered by the difference (docs/design.md §18.3).
"""

from __future__ import annotations

import base64
import binascii
import difflib
from typing import Any, Final

import msgspec

from pmagent.console.pages.approvals.presentation import content, headline
from pmagent.contracts.pla import MODES
from pmagent.events.errors import PmagentError

SEEN_CHARS_MAX: Final = 24_576
SITUATION_CHARS_MAX: Final = 1024
DEVICE_CHARS_MAX: Final = 120

_WORDS: Final = {
    "does": "what it does", "digest": "digest", "stands": "state", "mode": "mode", "armed": "device",
    "device": "which device", "expires_at": "open until", "paused": "effects",
}  # fmt: skip
_ARMED: Final = ("armed", "not armed")
_PAUSED: Final = ("paused", "running")
_MEANS: Final = ("digest", "mode", "armed", "device", "paused")
"""The parts that say what is approved, and whether, and where, it is typed."""


class BadDecision(PmagentError, exit_code=2):
    """The posted form is no decision that this page can make; nothing was recorded."""


class ShownState(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A page's statement of a proposal, and of an approval's effect. ``text``: what would be done, as the log may hold
    it, never what a mask hides."""

    does: str
    text: str
    digest: str
    stands: str
    mode: str
    armed: str
    device: str
    expires_at: str
    paused: str


class Situation(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The part that decides what an approval does. A form's address holds it as it was when the form was opened."""

    mode: str
    armed: str
    device: str
    paused: str


class Difference(msgspec.Struct, frozen=True):
    """One thing that is not as it was: ``name``, what was shown, how it is."""

    name: str
    shown: str
    now: str


def shown_state(document: dict[str, Any], pla: dict[str, Any], *, paused: bool) -> ShownState:
    """The statement of a page that shows ``document`` in this state of the PLA."""
    masked = {name: value for name, value in document.items() if name != "plain"}
    stands = document["outcome"] if document["stands"] == "closed" else document["stands"]
    by = f" by {document['decided_by']}" if document["decided_by"] else ""
    device = pla["device"]
    return ShownState(
        does=headline(masked), text=content(masked), digest=document["digest"], stands=f"{stands}{by}",
        mode=pla["mode"], armed=_ARMED[0] if pla["armed"] else _ARMED[1],
        device=f"{device['device_id']} on {device['port']}" if device is not None else "none",
        expires_at=document["expires_at"], paused=_PAUSED[0] if paused else _PAUSED[1],
    )  # fmt: skip


def situation(one: ShownState) -> Situation:
    """The statement of a page about what an approval does."""
    device = "".join(char if char.isprintable() else "?" for char in one.device[:DEVICE_CHARS_MAX])
    return Situation(one.mode, one.armed, device, one.paused)


def packed(one: ShownState | Situation) -> str:
    """For a form's hidden field, and its address: ASCII that no rendering changes."""
    return base64.urlsafe_b64encode(msgspec.json.encode(one)).decode()


def unpacked(text: str) -> ShownState:
    """The state in a form's hidden field. Raises BadDecision."""
    hint = "look at the proposal again, and decide there"
    if len(text) > SEEN_CHARS_MAX:
        raise BadDecision("what was shown is longer than any page of a proposal", hint)
    try:
        return msgspec.json.decode(base64.b64decode(text.encode("ascii"), b"-_", validate=True), type=ShownState)
    except (ValueError, binascii.Error, msgspec.DecodeError, RecursionError):
        raise BadDecision("the decision does not say what was shown", hint) from None


def opened(text: str) -> Situation | None:
    """How things stood when a form was opened, as its address says; None where it does not."""
    if len(text) > SITUATION_CHARS_MAX:
        return None
    try:
        one = msgspec.json.decode(base64.b64decode(text.encode("ascii"), b"-_", validate=True), type=Situation)
    except (ValueError, binascii.Error, msgspec.DecodeError, RecursionError):
        return None
    known = one.mode in MODES and one.armed in _ARMED and one.paused in _PAUSED
    return one if known and one.device.isprintable() and len(one.device) <= DEVICE_CHARS_MAX else None


def differences(shown: ShownState | Situation, now: ShownState | Situation) -> list[Difference]:
    """The differences from what was shown, but for the text: see ``compared``. Both are of one kind."""
    return [
        Difference(word, str(getattr(shown, name)), str(getattr(now, name)))
        for name, word in _WORDS.items()
        if getattr(shown, name, None) != getattr(now, name, None)
    ]


def otherwise(shown: ShownState, now: ShownState) -> list[Difference]:
    """The effect of an approval now, where it differs from what was shown: the mode was changed, the device was armed,
    changed or resumed meanwhile, or the other way round. The daemon compares the digest and the mode alone."""
    means = {_WORDS[name] for name in _MEANS}
    return [one for one in differences(shown, now) if one.name in means]


def compared(shown: ShownState, now: ShownState) -> list[tuple[str, str]]:
    """The two texts line by line: ``-`` was shown, ``+`` is, blank both; nothing where they are equal. A line break
    belongs to its line, so that one more or less is seen."""
    if shown.text == now.text:
        return []
    rows: list[tuple[str, str]] = []
    lines, others = shown.text.splitlines(keepends=True), now.text.splitlines(keepends=True)
    for tag, a, b, c, d in difflib.SequenceMatcher(None, lines, others, autojunk=False).get_opcodes():
        if tag == "equal":
            rows += [(" ", line) for line in lines[a:b]]
        else:
            rows += [("-", line) for line in lines[a:b]]
            rows += [("+", line) for line in others[c:d]]
    return rows
