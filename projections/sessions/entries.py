"""Session log entries of each event: the five types of the specification (docs/session-log.md); pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple

import msgspec

from pmagent.actors.pla.warden.actor import BRAIN, HID, WARDEN
from pmagent.contracts.effect import ActorHalted, RequestRefused
from pmagent.contracts.hid import HidArmed, HidCommitRequested, HidDisarmed, HidLost, HidOutcomeUnknown, HidTripped
from pmagent.contracts.pla import NOBODY
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaArmAnswered,
    PlaDecisionRefused,
    PlaExecuted,
    PlaExecutionRequested,
    PlaModeAnswered,
    PlaModeChanged,
    PlaObserved,
    PlaProposalClosed,
    PlaProposalRefused,
    PlaProposed,
    PlaRejected,
    PlaSessionBegan,
    PlaSessionEnded,
    PlaViolation,
)
from pmagent.events.event import Event
from pmagent.projections.sessions.words import WORD_CHARS, action_summary, listed, number, operator, words
from pmagent.projections.views.sessions import Carried, Session

EventType = Literal["PROPOSAL", "DECISION", "EXECUTION", "ERROR", "MODE_CHANGE"]

WRITERS: Final[dict[type[msgspec.Struct], frozenset[str]]] = {
    PlaSessionBegan: frozenset((WARDEN,)),
    PlaSessionEnded: frozenset((WARDEN,)),
    PlaModeChanged: frozenset((WARDEN,)),
    PlaModeAnswered: frozenset((WARDEN,)),
    PlaProposed: frozenset((BRAIN,)),
    PlaProposalRefused: frozenset((BRAIN,)),
    PlaObserved: frozenset((BRAIN,)),
    PlaProposalClosed: frozenset((WARDEN,)),
    PlaApproved: frozenset((WARDEN,)),
    PlaRejected: frozenset((WARDEN,)),
    PlaDecisionRefused: frozenset((WARDEN,)),
    PlaExecutionRequested: frozenset((WARDEN,)),
    PlaViolation: frozenset((BRAIN, WARDEN, HID)),
    PlaExecuted: frozenset((HID,)),
    PlaArmAnswered: frozenset((HID,)),
    HidCommitRequested: frozenset((HID,)),
    HidTripped: frozenset((HID,)),
    HidOutcomeUnknown: frozenset((HID,)),
}
"""The actor that decides each event. The same event of another actor is an error, and counts for nothing else."""

PARTS: Final = frozenset((BRAIN, WARDEN, HID))
"""The actors whose halt concerns a session."""

_BORDER: Final = "border"
"""It notices what is wrong with documents that operators hand in."""
_BY_OPERATORS: Final = frozenset(("requested", "ended"))
"""The codes of mode changes that an operator wanted; the others are the system's own."""


class Entry(NamedTuple):
    """An entry: its type, who was responsible, the event's own details, and what of. A ``violation`` stands in the log
    of violations too."""

    type: EventType
    operator_id: str
    details: dict[str, Any]
    proposal_id: str = ""
    execution_id: str = ""
    violation: bool = False


class _Details(msgspec.Struct):
    position: int
    by: str


class _Told(msgspec.Struct):
    """So much of a violation's entry says whom it answers."""

    operator_id: str
    details: _Details


def answered(violations: bytes) -> set[int]:
    """The positions of those violations, of a log of them, that are the answer to an operator's own request, or to a
    document that an operator handed in. A line that is no entry is none."""
    found: set[int] = set()
    for line in violations.splitlines():
        with suppress(msgspec.DecodeError, msgspec.ValidationError):
            one = msgspec.json.decode(line, type=_Told)
            if one.operator_id != NOBODY or one.details.by == _BORDER:
                found.add(one.details.position)
    return found


def is_forged(event: Event) -> bool:
    """Whether it is another's decision than the one of whom it should be."""
    writers = WRITERS.get(type(event.data))
    return writers is not None and (event.kind != "decision" or event.actor not in writers)


def forged_entry(event: Event) -> Entry:
    """The entry of such an event."""
    who = words(event.actor, WORD_CHARS)
    return _error("forged", f"{who} wrote {event.type}, which is not its to write; it counts for nothing")


def entries_of(session: Session, event: Event, who: str) -> Iterator[Entry]:
    """The entries of an event, in order. ``session`` is as it was before; ``who`` asked for what this answers, "" where
    that is nobody."""
    data = event.data
    yield from _of_modes(session, data, who)
    yield from _of_proposals(session, data, who)
    yield from _of_executions(session, data)
    yield from _of_trouble(data, who)


def _of_modes(session: Session, data: Any, who: str) -> Iterator[Entry]:
    details: dict[str, Any]
    match data:
        case PlaSessionBegan(operator_id=name, mode=mode):
            yield Entry("MODE_CHANGE", operator(name), {"new_mode": mode})
        case PlaModeChanged(previous=previous, mode=mode, who=name, code=code, why=why):
            details = {
                "old_mode": previous, "new_mode": mode, "code": words(code, WORD_CHARS), "why": words(why),
                "who": words(name, WORD_CHARS), "channel": data.channel,
            }  # fmt: skip
            yield Entry("MODE_CHANGE", operator(name) if code in _BY_OPERATORS else NOBODY, details)
        case PlaModeAnswered(accepted=False, reasons=reasons):
            yield _error("mode", listed(reasons), who)
        case PlaArmAnswered(accepted=True, armed=armed, reasons=reasons):
            yield Entry("MODE_CHANGE", operator(who), {"armed": armed, "why": listed(reasons)})
        case PlaArmAnswered(reasons=reasons):
            yield _error("arm", listed(reasons), who)
        case HidArmed(boot_id=boot, lease_ms=lease):
            details = {"armed": True, "boot_id": words(boot, WORD_CHARS), "lease_ms": number(lease)}
            yield Entry("MODE_CHANGE", NOBODY, details)
        case HidDisarmed(boot_id=boot):
            yield Entry("MODE_CHANGE", NOBODY, {"armed": False, "boot_id": words(boot, WORD_CHARS)})
        case PlaSessionEnded(state=state, reason=reason):
            details = {"old_mode": session.mode, "outcome": state, "why": words(reason)}
            yield Entry("MODE_CHANGE", NOBODY, details)


def _of_proposals(session: Session, data: Any, who: str) -> Iterator[Entry]:
    details: dict[str, Any]
    match data:
        case PlaProposed():
            details = {
                **action_summary(data.action, data.chars, masked=data.masked), "digest": words(data.digest, WORD_CHARS),
                "credential_warning": data.credential_warning, "rationale": words(data.rationale),
                "proposed_by": words(data.proposed_by, WORD_CHARS), "expires_at": words(data.expires_at, WORD_CHARS),
                "channel": data.channel,
            }  # fmt: skip
            if data.findings:
                details["findings"] = listed(data.findings)
            yield Entry("PROPOSAL", operator(data.requested_by), details, data.proposal_id)
        case PlaApproved(proposal_id=name, operator_id=by, executes=executes):
            details = {
                "decision": "APPROVED", "digest": words(data.digest, WORD_CHARS), "channel": data.channel,
                "executes": executes, "expires_at": words(data.expires_at, WORD_CHARS),
            }  # fmt: skip
            if data.credential_acknowledged:
                details["credential_acknowledged"] = True
            yield Entry("DECISION", operator(by), details, name)
        case PlaRejected(proposal_id=name, operator_id=by, reason=reason):
            details = {
                "decision": "REJECTED", "digest": words(data.digest, WORD_CHARS), "channel": data.channel,
                "why": words(reason),
            }  # fmt: skip
            yield Entry("DECISION", operator(by), details, name)
        case PlaProposalClosed(outcome="expired" | "withdrawn" as outcome, proposal_id=name, why=why):
            details = {"outcome": outcome, "why": words(why), "digest": words(data.digest, WORD_CHARS)}
            yield Entry("DECISION", NOBODY, details, name)
        case PlaProposalClosed(outcome="unknown", proposal_id=name, why=why):
            yield from _unsettled(session, name, why)
        case PlaDecisionRefused(code=code, reasons=reasons, proposal_id=name):
            entry = _error(words(code, WORD_CHARS), listed(reasons), who, proposal_id=name)
            if data.digest:
                entry.details["digest"] = words(data.digest, WORD_CHARS)
            yield entry
        case PlaProposalRefused(code=code, reasons=reasons):
            yield _error(words(code, WORD_CHARS), listed(reasons), who)
        case PlaObserved(frame=0, reasons=reasons):
            yield _error("frame", listed(reasons), who)


def _of_executions(session: Session, data: Any) -> Iterator[Entry]:
    details: dict[str, Any]
    match data:
        case HidCommitRequested(execution_id=name):
            proposal, by = _of(session.carried, name)
            details = {
                "phase": "intent", "digest": words(data.digest, WORD_CHARS), "permit": number(data.permit),
                "boot_id": words(data.boot_id, WORD_CHARS),
            }  # fmt: skip
            yield Entry("EXECUTION", by, details, proposal, name)
        case PlaExecuted(execution_id=name, outcome=outcome, code=code, why=why):
            _, by = _of(session.carried, name)
            details = {
                "phase": "ended", "action_type": data.action_type, "outcome": outcome,
                "done": number(data.done), "of": number(data.of),
                "code": words(code, WORD_CHARS), "why": words(why),
            }  # fmt: skip
            yield Entry("EXECUTION", by, details, data.proposal_id, name)
        case HidOutcomeUnknown(execution_id=name, why=why, of=of, action_type=kind):
            _, by = _of(session.carried, name)
            details = {"phase": "ended", "action_type": kind, "outcome": "unknown", "of": number(of), "why": words(why)}
            yield Entry("EXECUTION", by, details, data.proposal_id, name)
            yield _error("outcome_unknown", words(why), proposal_id=data.proposal_id, execution_id=name)


def _of_trouble(data: Any, who: str) -> Iterator[Entry]:
    match data:
        case PlaViolation():
            entry = _error(words(data.kind, WORD_CHARS), words(data.text), who, data.proposal_id, data.execution_id)
            entry.details.update(
                kind=words(data.kind, WORD_CHARS), severity=data.severity, contract=words(data.contract, WORD_CHARS),
                handling=words(data.handling), by=words(data.by, WORD_CHARS),
            )  # fmt: skip
            yield entry._replace(violation=True)
        case HidTripped(code=code, text=text):
            yield _error(words(code, WORD_CHARS), words(text))
        case HidLost(code=code, text=text):
            yield _error(words(code, WORD_CHARS), f"the device is lost: {words(text, WORD_CHARS)}")
        case ActorHalted(name=name, error=error, place=where) if name in PARTS:
            yield _error("halted", words(f"{name} is halted: {error} in {where}"))
        case RequestRefused(name=name, reason=reason) if name in PARTS:
            yield _error("halted", words(f"a request got no answer: {name} is {reason}"), who)


def _unsettled(session: Session, proposal_id: str, why: str) -> Iterator[Entry]:
    """The end of an execution that the link did not tell of."""
    carried = session.carried
    if carried is None or carried.settled or carried.proposal_id != proposal_id:
        return
    details = {"phase": "ended", "outcome": "unknown", "why": words(why)}
    yield Entry("EXECUTION", carried.operator_id, details, proposal_id, carried.execution_id)
    yield _error("outcome_unknown", words(why), proposal_id=proposal_id, execution_id=carried.execution_id)


def _of(carried: Carried | None, execution_id: str) -> tuple[str, str]:
    """The execution's proposal, and who approved it."""
    if carried is None or carried.execution_id != execution_id:
        return "", NOBODY
    return carried.proposal_id, carried.operator_id


def _error(code: str, message: str, who: str = "", proposal_id: str = "", execution_id: str = "") -> Entry:
    details = {"code": code, "error_message": message}
    return Entry("ERROR", operator(who), details, proposal_id, execution_id)
