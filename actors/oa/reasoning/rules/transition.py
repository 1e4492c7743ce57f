"""PhaseTransitionValidator: whether the next phase may begin; pure (docs/design.md §13.2).

Every criterion that is not met is named; READY has none. An unverifiable criterion is not met. Phases are words with an
order: "9.1", "27", "28B", "27.E"; whatever names a phase is a word first (docs/design.md §12.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pmagent.actors.oa.policy import allows
from pmagent.actors.oa.reasoning.rules import freshness
from pmagent.actors.oa.reasoning.rules.answer import Answer, Category, Evidence, Making
from pmagent.actors.oa.reasoning.rules.constraints import hits, read
from pmagent.actors.oa.reasoning.rules.evidence import weighed
from pmagent.actors.oa.reasoning.rules.facts import (
    REFRESH,
    SSOT_SURFACE,
    Facts,
    forbidden,
    gather,
    listing,
    mapping,
    word,
)
from pmagent.actors.oa.reasoning.rules.safeops import refused
from pmagent.actors.oa.reasoning.rules.text import bounded, listed, printable, quoted
from pmagent.actors.oa.reasoning.rules.vocabulary import denied, table
from pmagent.contracts.reasoning import CRITERIA_MAX, PhaseTransitionValidatorResult, ReasoningEnvelope

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
        groups = [group for group in match.groups() if group]
        current, proposed = current or groups[0], proposed or groups[1]
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
    return next((phase for key in keys if (phase := phase_word(context.get(key)))), "")


def phase_word(value: Any) -> str:
    """A phase as one word, without "phase" before it; "" when ``value`` names none."""
    phase = printable(word(value))
    phase = re.sub(r"^phase\s+", "", phase, flags=re.IGNORECASE)
    return phase if len(phase) <= PHASE_CHARS_MAX else ""


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


PROGRAM = "PhaseTransitionValidator"
CHECKLIST_KEYS = ("phase_done_checklist", "checklist", "exit_criteria")
BLOCKING_KEYS = ("blocking_items", "blockers", "missing_criteria", "open_items")

SKIPPED_TOLD = 3
"""So many of the phases that would be skipped are named; the others are counted."""

_DONE = table("transition").done


class _Missing(Making):
    """The criteria that are not met, in the order in which they are found, each with its diagnostic; ``known``: so many
    were stated anywhere, met or not."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts.diagnostics)
        self.criteria: list[str] = []
        self.known = 0

    def add(self, criterion: str, mend: str | None = None, category: Category = "evidence") -> None:
        """A criterion that is not met."""
        self.criteria.append(bounded(criterion))
        self.note(category, "error", criterion, mend)

    def unproven(self, criterion: str, mend: str | None = None, category: Category = "evidence") -> None:
        """One that is not met, or cannot be told, because of the inputs."""
        self.degraded = True
        self.add(criterion, mend, category)

    def condition(self, message: str, mend: str | None = None, **details: Any) -> None:
        """Something that a person has to see to."""
        self.note("condition", "warn", message, mend, **details)


def answer(envelope: ReasoningEnvelope, evidence: Sequence[Evidence]) -> Answer:
    """Whether the transition may be made, and what is missing."""
    facts = gather(envelope, evidence)
    if objections := forbidden(facts, PROGRAM):
        return refused(PROGRAM, objections)
    missing = _Missing(facts)
    current, proposed = asked(envelope, facts)
    _order(missing, envelope, facts, current, proposed)
    _kernel(missing, envelope, facts)
    _checklist(missing, envelope.oa_context)
    _ssot(missing, envelope, facts, current)
    _evidence(missing, envelope, facts)
    return _concluded(missing, facts, current, proposed)


def _order(missing: _Missing, envelope: ReasoningEnvelope, facts: Facts, current: str, proposed: str) -> None:
    if not proposed:
        missing.add("the proposed phase is not named", "name it: oa_context.proposed_phase", category="policy")
        return
    if not current:
        missing.add("the current phase is not known: neither context, goal nor kernel names it", REFRESH)
        return
    if facts.phase and not same(facts.phase, current):
        missing.add(f"the kernel is in phase {facts.phase}, not in {current}", REFRESH, category="policy")
    start, end = order(current), order(proposed)
    if same(current, proposed):
        missing.add(f"phase {current} is the current one: there is no transition to make", category="policy")
    elif start is None or end is None:
        missing.add(f"whether phase {proposed} follows {current} cannot be told from their names", category="policy")
    elif end < start:
        _backward(missing, envelope.oa_context, current, proposed)
    elif left_out := skipped(current, proposed, known_phases(envelope, facts.result(SSOT_SURFACE))):
        rest = f" and {len(left_out) - SKIPPED_TOLD} more" if len(left_out) > SKIPPED_TOLD else ""
        names = listed(left_out[:SKIPPED_TOLD], ", ") + rest
        criterion = f"phase {proposed} does not follow {current}: it would skip {names}"
        missing.add(criterion, f"go to phase {left_out[0]} first", category="policy")


def _backward(missing: _Missing, context: dict[str, Any], current: str, proposed: str) -> None:
    plan = context.get("rollback_plan")
    if isinstance(plan, str | list | dict) and plan and not (isinstance(plan, str) and denied(plan)):
        missing.condition(
            f"phase {proposed} lies before {current}; the rollback plan in oa_context.rollback_plan is for a person"
        )
        return
    criterion = f"phase {proposed} lies before {current}: a rollback needs a plan"
    missing.add(criterion, "state it: oa_context.rollback_plan", category="policy")


def _kernel(missing: _Missing, envelope: ReasoningEnvelope, facts: Facts) -> None:
    for why in facts.unproven.values():
        missing.unproven(f"not verifiable: {why}", "allow the tool, and let it answer", "tool")
    failed = [f"failed check: {name}" for name in facts.failed_checks]
    for criterion in failed:
        missing.unproven(criterion, f"mend what it checks, then: {REFRESH}")
    if not allows(facts.mode, "phase_transitions"):
        others = [why for why in facts.why if why not in failed]
        because = f": {listed(others)}" if others else ""
        criterion = f"mode {facts.mode} forbids phase_transitions{because}"
        missing.unproven(criterion, listed(facts.mends) or REFRESH, "policy")
    found = freshness.of_reality(envelope, facts)
    if found.state == "stale":
        _stale(missing, envelope, found.why)
    elif found.state == "unknown":
        missing.note("evidence", "warn", found.why, REFRESH)


def _stale(missing: _Missing, envelope: ReasoningEnvelope, why: str) -> None:
    missing.degraded = True
    if freshness.strict(envelope):
        missing.add(f"stale evidence: {why}", REFRESH)
    else:
        missing.condition(f"the evidence is renewed first: {why}", REFRESH)


def _checklist(missing: _Missing, context: dict[str, Any]) -> None:
    for key in CHECKLIST_KEYS:
        given = context.get(key)
        if given is None:
            continue
        where = f"oa_context.{key}"
        if not isinstance(given, dict):
            criterion = f"{where} is {quoted(given)}, not a map of criteria to true or false"
            missing.unproven(criterion, "state it as such a map")
            continue
        missing.known += len(given)
        for name, met in given.items():
            if met is False:
                missing.add(f"{where}: {quoted(name)} is not met")
            elif met is not True:
                missing.unproven(f"{where}: {quoted(name)} is {quoted(met)}, neither true nor false")
    for key in BLOCKING_KEYS:
        for item in _items(context.get(key)):
            missing.add(f"oa_context.{key}: {item}")


def _items(value: Any) -> list[str]:
    """The open items that a list (or one text) names."""
    if isinstance(value, str):
        return [] if denied(value) else [quoted(value)]
    return [quoted(item) for item in listing(value) if item not in (None, "", [], {})]


def _ssot(missing: _Missing, envelope: ReasoningEnvelope, facts: Facts, current: str) -> None:
    """SSOT's criteria of the phase that is left. An item that the tool and the envelope both name is listed once."""
    known: set[str] = set()
    for where, ssot in {
        SSOT_SURFACE: facts.result(SSOT_SURFACE), "ssot_index": envelope.kernel_state_ref.ssot_index,
    }.items():
        stated, open_items = _of_phase(ssot, current)
        missing.known = max(missing.known, stated)
        if ssot.get("dms_share_alignment") in ("BROKEN", "ERROR"):
            missing.degraded = True
            open_items.append(f"dms_share_alignment is {word(ssot['dms_share_alignment'])}")
        for item in open_items:
            if item not in known:
                known.add(item)
                missing.add(f"{where}.{item}", REFRESH if item.startswith("dms_") else None)


def _of_phase(ssot: dict[str, Any], current: str) -> tuple[int, list[str]]:
    """How many criteria a surface states for the phase, and what it says is open, by path."""
    stated, found = 0, []
    for phase, entry in mapping(ssot.get("phases")).items():
        if not same(phase_word(phase), current) or not isinstance(entry, dict):
            continue
        if (status := entry.get("status")) is not None:
            stated += 1
            if not isinstance(status, str) or status.strip().lower() not in _DONE:
                found.append(f"phases.{current}.status is {quoted(status)}, not done")
        found += [f"phases.{current}.{key}: {item}" for key in BLOCKING_KEYS for item in _items(entry.get(key))]
    found += [f"{key}: {item}" for key in BLOCKING_KEYS for item in _items(ssot.get(key))]
    return stated, found


def _evidence(missing: _Missing, envelope: ReasoningEnvelope, facts: Facts) -> None:
    found, problems = weighed(envelope, facts)
    missing.diagnostics += problems
    missing.degraded = missing.degraded or bool(problems)
    missing.known += len(listing(envelope.oa_context.get("evidence")))
    for one in found:
        if one.weight == "stale":
            _stale(missing, envelope, one.what)
        elif one.weight == "hard":
            for item in one.items or [""]:
                missing.unproven(f"{one.what.split(' holds ')[0]}: {item}" if item else one.what)
        else:
            missing.degraded = True
            missing.condition(one.what)
    texts, wrong = read(envelope.oa_context.get("constraints"))
    if wrong:
        missing.degraded = True
        missing.condition(wrong, "state the constraints as a list of texts")
    for hit in hits(texts, envelope.goal):
        if hit.sure:
            missing.add(hit.what, category="policy")
        else:
            missing.condition(hit.what, constraint=hit.constraint)


def _concluded(missing: _Missing, facts: Facts, current: str, proposed: str) -> Answer:
    criteria = list(dict.fromkeys(missing.criteria))
    if len(criteria) > CRITERIA_MAX:
        criteria = [*criteria[: CRITERIA_MAX - 1], f"and {len(criteria) - CRITERIA_MAX + 1} more"]
    step = f"phase {current or '?'} to {proposed or '?'}, mode {facts.mode}"
    if criteria:
        payload = PhaseTransitionValidatorResult(transition_status="NOT_READY", missing_criteria=criteria)
        summary = f"{step}: not ready: {listed(criteria)}"
    else:
        payload = PhaseTransitionValidatorResult(transition_status="READY", missing_criteria=[])
        summary = f"{step}: the phases follow each other, reality is green, and {_fulfilled(missing.known)}"
        if not missing.known:
            message = f"neither SSOT nor context lists criteria for phase {current}: none could be checked"
            missing.note("evidence", "warn", message, "state them: oa_context.phase_done_checklist")
    return missing.answer(payload, summary)


def _fulfilled(known: int) -> str:
    match known:
        case 0:
            return "no criterion is stated that could be missing"
        case 1:
            return "the one criterion that is stated is met"
    return f"all {known} stated criteria are met"
