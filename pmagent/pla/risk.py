"""How much an action may do: a tier, and the reasons for it; pure, and of the action alone (docs/design.md §18.3).

A tier decides how the approval is asked for, never whether: high wants the digest's beginning typed. It errs upwards:
what nobody can know (what lies under the pointer) is not called low, and what a word of a command suggests is believed
(``risk_words.toml``). A line break by itself is of medium risk: ``ls`` and Enter is no ``rm -rf`` and Enter.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import Any, Final, Literal

import msgspec

Tier = Literal["high", "medium", "low"]
TIERS: Final[tuple[Tier, ...]] = ("high", "medium", "low")
"""In the order in which they are looked at."""

LONG_CHARS: Final = 200
"""A text of more is long: nobody takes it in at a glance."""
WORD_CHARS: Final = 40
"""So much of the words that look dangerous is named."""
RULES: Final = "rules"
"""The proposer of what a goal states literally; any other is a model."""


def _matcher(phrase: str) -> str:
    """The pattern of a phrase; see the file."""
    words = []
    for word in phrase.split():
        if word == "…":
            words.append(r"(?:[^\n;|&]{0,300}?\s)?")
            continue
        parts = [re.escape(part) for part in word.split("*")]
        begin = r"(?<!\S)" if word[0] in "-:+" else r"(?<![^\s;|&])" if word[0] == "*" else ""
        begin = r"(?<![\w-])" if word[0].isalnum() else begin
        end = r"(?![\w-])" if word[-1].isalnum() else ""
        words.append(begin + r"[^\s;|&]*".join(parts) + end)
    pattern = ""
    for word in words:
        follows = pattern and not pattern.endswith(r"\s)?")
        pattern += (r"\s+" if follows else "") + word
    return pattern + (r"(?=\s+\S)" if phrase.endswith(" ") else "")


def _deeds() -> dict[str, re.Pattern[str]]:
    tables = tomllib.loads(resources.files("pmagent.pla").joinpath("risk_words.toml").read_text("utf-8"))
    found = {}
    for what, lists in tables.items():
        phrases = [phrase for listed in lists.values() for phrase in listed]
        found[what] = re.compile("|".join(map(_matcher, phrases)), re.IGNORECASE)
    return found


_DEEDS: Final = _deeds()
"""A command's possible effects, by its words."""


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
            hidden = bool(document["masked"]) and not document.get("plain")
            foreign = document["proposed_by"] != RULES or document["channel"] == "document"
            yield from _of_text(payload["text"], hidden=hidden, foreign=foreign)
        case "KEY_COMBO":
            yield _of_keys(frozenset(payload["keys"]))
        case "MOUSE_MOVE":
            yield "low", "the pointer moves, and nothing is pressed"
        case _:
            yield "medium", "nobody knows what lies under the pointer"


def _of_text(text: str, *, hidden: bool, foreign: bool) -> Iterator[tuple[Tier, str]]:
    """``hidden``: part of it is masked, and may hold an Enter for all that ``text`` tells. ``foreign``: no operator
    stated it literally. What is run is of high risk then, and where it is too long to be taken in at a glance."""
    enters = text.count("\n")
    if enters:
        times = "a line break" if enters == 1 else f"{enters} line breaks"
        tier: Tier = "high" if foreign or len(text) > LONG_CHARS else "medium"
        yield tier, f"{times}: Enter runs or sends what stands there"
    for what, pattern in _DEEDS.items():
        if (match := pattern.search(text)) is not None:
            yield "high", f"looks like {what} ({' '.join(match[0].split())[:WORD_CHARS]})"
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
    found = [(match.start(), match.end(), what) for what, pattern in _DEEDS.items() for match in pattern.finditer(text)]
    kept: list[tuple[int, int, str]] = []
    for one in sorted(found, key=lambda each: (each[0], -each[1])):
        if not kept or one[0] >= kept[-1][1]:
            kept.append(one)
    return kept
