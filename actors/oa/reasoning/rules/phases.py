"""Phases as words with an order: "9.1", "27", "28B", "27.E"; pure. Whatever names a phase is a word first
(docs/design.md §12.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from pmagent.actors.oa.reasoning.rules.facts import Facts, mapping, word
from pmagent.actors.oa.reasoning.rules.text import printable
from pmagent.contracts.reasoning import ReasoningEnvelope

PHASE_CHARS_MAX = 40

_NAMED = r"([0-9]{1,6}(?:\.[0-9]{1,6}){0,3}(?:\.?[A-Za-z]{1,2})?)(?![\w])"
_FROM_TO = re.compile(
    rf"\bphase\s+{_NAMED}\s*(?:to|into|->|→|=>)\s*(?:phase\s+)?{_NAMED}|(?<![\w.]){_NAMED}\s*(?:->|→|=>)\s*(?:phase\s+)?{_NAMED}",
    re.IGNORECASE,
)
_BARE = re.compile(rf"\bfrom\s+{_NAMED}\s+(?:in)?to\s+{_NAMED}", re.IGNORECASE)
_TO = re.compile(rf"\b(?:to|into|enter|begin|start)\s+phase\s+{_NAMED}", re.IGNORECASE)
_ANY = re.compile(rf"\bphase\s+{_NAMED}", re.IGNORECASE)
_ORDERED = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6}){0,3})\.?([A-Za-z]{0,2})")

Order = tuple[tuple[int, ...], str]


def asked(envelope: ReasoningEnvelope, facts: Facts) -> tuple[str, str]:
    """The phases that the transition leads from and to: as the context names them, else as the goal does; the phase
    that is left is the kernel's where neither does. "" unknown."""
    context = envelope.oa_context
    current = _named(context, "current_phase", "from_phase")
    proposed = _named(context, "proposed_phase", "to_phase")
    if match := _FROM_TO.search(envelope.goal) or _BARE.search(envelope.goal):
        told = [group for group in match.groups() if group]
        current, proposed = current or told[0], proposed or told[1]
    elif match := _TO.search(envelope.goal):
        proposed = proposed or match[1]
    elif not proposed:
        proposed = _other(envelope.goal, current or facts.phase)
    return current or facts.phase, proposed


def _other(goal: str, current: str) -> str:
    """The one phase that the goal names besides the current one; "" when there is none, or more."""
    named = list(dict.fromkeys(match[1] for match in _ANY.finditer(goal)))
    others = [phase for phase in named if not current or not same(phase, current)]
    return others[0] if len(others) == 1 else ""


def _named(context: dict[str, Any], *keys: str) -> str:
    return next((told for key in keys if (told := phase_word(context.get(key)))), "")


def phase_word(value: Any) -> str:
    """A phase as one word, without "phase" before it; "" when ``value`` names none."""
    told = printable(word(value))
    told = re.sub(r"^phase\s+", "", told, flags=re.IGNORECASE)
    return told if len(told) <= PHASE_CHARS_MAX else ""


def order(phase: str) -> Order | None:
    """Where a phase stands: by its numbers, then its letters. None: its name does not tell."""
    match = _ORDERED.fullmatch(phase)
    return (tuple(int(number) for number in match[1].split(".")), match[2].upper()) if match else None


def same(one: str, other: str) -> bool:
    """Whether two words name the same phase ("028b" and "28B" do)."""
    first, second = order(one), order(other)
    return one == other or (first is not None and first == second)


def skipped(current: str, proposed: str, known: Iterable[str]) -> list[str]:
    """The phases between the two, in their order: those that ``known`` names, and whole numbers that lie between.

    ``proposed`` comes after ``current``; ``known`` are phases that the surfaces name.
    """
    start, end = order(current), order(proposed)
    if start is None or end is None:
        return []
    between = {place: phase for phase in known if (place := order(phase)) and start < place < end}
    for number in range(start[0][0] + 1, min(end[0][0], start[0][0] + 100)):
        between.setdefault(((number,), ""), str(number))
    if start[0] == end[0] and len(start[1]) <= 1 and len(end[1]) == 1:
        whole, dot = ".".join(map(str, start[0])), "." if re.search(r"\.[A-Za-z]", proposed) else ""
        for letter in range(ord(start[1] or "@") + 1, ord(end[1])):
            between.setdefault((start[0], chr(letter)), f"{whole}{dot}{chr(letter)}")
    return [between[place] for place in sorted(between)]


def known_phases(envelope: ReasoningEnvelope, live: dict[str, Any]) -> list[str]:
    """The phases that SSOT (live, and the envelope's) and bootstrap have entries for."""
    kernel = envelope.kernel_state_ref
    entries = [mapping(surface.get("phases")) for surface in (live, kernel.ssot_index, kernel.bootstrap)]
    return sorted({phase for entry in entries for phase in entry if order(phase)})
