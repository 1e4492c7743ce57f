"""How much an action may do: a tier, and the reasons for it; pure, and of the action alone (docs/design.md §18.3).

A tier decides how the approval is asked for, never whether: high wants the digest's beginning typed. It errs upwards:
what nobody can know (what lies under the pointer) is not called low, and what a word of a command suggests is believed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

Tier = Literal["high", "medium", "low"]
TIERS: Final[tuple[Tier, ...]] = ("high", "medium", "low")
"""In the order in which they are looked at."""

LONG_CHARS: Final = 200
"""A text of more is long: nobody takes it in at a glance."""
RULES: Final = "rules"
"""The proposer of what a goal states literally; any other is a model."""

_DEEDS: Final = {
    "it acts as another user": r"\b(sudo|doas|pkexec|runas)\b|\bsu\s+-",
    "it removes something": r"\b(rm|rmdir|unlink|shred|del|truncate)\s|\bgit\s+(clean|reset)\b",
    "it writes to disks": r"\b(mkfs\S*|fdisk|parted|wipefs|dd)\b|>\s*/dev/[a-z]",
    "it stops the machine": r"\b(shutdown|reboot|poweroff|halt)\b|\binit\s+[06]\b",
    "it runs a text as a program":
        r"\|\s*(sudo\s+)?(ba|da|z|k)?sh\b|\b(iex|eval|exec)\b|\b(python[0-9.]*|perl|node|ruby)\s+-[ce]\b",
    "it reaches another machine": r"\b(curl|wget|nc|ncat|ssh|scp|sftp|ftp|rsync|telnet)\b|\bgit\s+push\b|://",
    "it changes who may do what, or what runs":
        r"\b(chmod|chown|setfacl|useradd|userdel|passwd|visudo|crontab|systemctl|reg)\b",
}  # fmt: skip
"""A command's possible effects, by its words. Words find honest commands, not hidden ones: so each only adds."""
_DEED_PATTERNS: Final = [(re.compile(words, re.IGNORECASE), what) for what, words in _DEEDS.items()]

_SYSTEM_CHORDS: Final = (
    frozenset(("ctrl", "alt")), frozenset(("alt", "f4")), frozenset(("alt", "tab")), frozenset(("ctrl", "escape")),
)  # fmt: skip
"""Keys that the system takes for itself, whatever program is in front; and everything with the GUI key."""

_PROGRAMS_OWN: Final = frozenset(("delete", "backspace", "escape", "tab", "space", "insert"))
_PASTING: Final = frozenset(("ctrl", "v")), frozenset(("shift", "insert"))


class Risk(msgspec.Struct, frozen=True):
    """The tier, and why; the reasons of the highest tier first."""

    tier: Tier
    reasons: list[str]


def risk(document: dict[str, Any]) -> Risk:
    """The risk of a proposal's document (``pmagent.pla.reading``). With ``plain`` in it, that is looked at in place of
    what is masked."""
    found = [*_of_action(document), *_of_origin(document)]
    found.sort(key=lambda one: TIERS.index(one[0]))
    return Risk(found[0][0], [reason for _, reason in found])


def _of_origin(document: dict[str, Any]) -> Iterator[tuple[Tier, str]]:
    if document["credential_warning"]:
        kinds = ", ".join(document["findings"]) or "not said which"
        yield "high", f"it holds what looks like credentials: {kinds}"
    elif document["masked"]:
        yield "high", "part of it is masked"
    if document["proposed_by"] != RULES:
        yield "medium", "a model proposes it, and what stood on the screen that it read anybody may have written"
    if document["channel"] == "document":
        yield "medium", "another program handed it in"


def _of_action(document: dict[str, Any]) -> Iterator[tuple[Tier, str]]:
    payload = document.get("plain") or document["payload"]
    match document["action_type"]:
        case "TYPE_TEXT":
            yield from _of_text(payload["text"], hidden=bool(document["masked"]) and not document.get("plain"))
        case "KEY_COMBO":
            yield _of_keys(frozenset(payload["keys"]))
        case "MOUSE_MOVE":
            yield "low", "the pointer moves, and nothing is pressed"
        case _:
            yield "medium", "nobody knows what lies under the pointer"


def _of_text(text: str, *, hidden: bool) -> Iterator[tuple[Tier, str]]:
    """``hidden``: part of it is masked, and may hold an Enter for all that ``text`` tells."""
    enters = text.count("\n")
    if enters:
        times = "a line break" if enters == 1 else f"{enters} line breaks"
        yield "high", f"{times}: Enter runs or sends what stands there"
    for pattern, what in _DEED_PATTERNS:
        if pattern.search(text):
            yield "high", f"{what}, by its words"
    if "\t" in text:
        yield "medium", "a tab: it goes to another field, or completes a word"
    if len(text) > LONG_CHARS:
        yield "medium", f"it is long: {len(text)} characters"
    if not (hidden or enters or "\t" in text):
        yield "low", "no Enter and no Tab: nothing is run or sent by it"


def _of_keys(keys: frozenset[str]) -> tuple[Tier, str]:
    if "gui" in keys or any(chord <= keys for chord in _SYSTEM_CHORDS):
        return "high", "the system takes these keys for itself, whatever program is in front"
    if "enter" in keys:
        return "high", "Enter runs or sends what stands there"
    if any(chord <= keys for chord in _PASTING):
        return "high", "it pastes what lies on the clipboard, and a terminal runs what has a line break in it"
    if keys & {"ctrl", "alt"}:
        return "medium", "a command to the program in front"
    if keys & _PROGRAMS_OWN or any(re.fullmatch(r"f[0-9]+", key) for key in keys):
        return "medium", "what this key does depends on the program in front"
    return "low", "one key, that runs or sends nothing" if len(keys) == 1 else "keys that run or send nothing"


def deeds(text: str) -> list[tuple[int, int, str]]:
    """Where the words stand that suggest what a text does: begin, end and what it is, in order; none within another."""
    found = [(match.start(), match.end(), what) for pattern, what in _DEED_PATTERNS for match in pattern.finditer(text)]
    kept: list[tuple[int, int, str]] = []
    for one in sorted(found, key=lambda each: (each[0], -each[1])):
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
    return kept
