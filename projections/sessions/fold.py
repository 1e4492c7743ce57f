"""A session's view after each of its events; pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pmagent.contracts.hid import HidOutcomeUnknown
from pmagent.contracts.pla_events import (
    PlaExecuted,
    PlaExecutionRequested,
    PlaModeChanged,
    PlaProposalClosed,
    PlaSessionBegan,
    PlaSessionEnded,
)
from pmagent.events.event import Event
from pmagent.projections.sessions.entries import Entry, entries_of, forged_entry, is_forged
from pmagent.projections.sessions.words import WORD_CHARS, known_id, log_reference, operator, words
from pmagent.projections.views.sessions import Carried, Session, Tally

ID_CHARS: Final = 12
"""So much of the log's id stands in the id of each entry."""

replace = msgspec.structs.replace


def evolved(session: Session, event: Event, sum: str, log_id: str, who: str) -> Session:
    """The view after an event; ``who``: the operator whose request it answers, "" for nobody. The same view where the
    event says nothing that is told."""
    if is_forged(event):
        return _with_entries(session, event, sum, log_id, [forged_entry(event)])
    after = _moved(session, event)
    entries = list(entries_of(session, event, who))
    if not entries:
        return after
    after = _with_entries(after, event, sum, log_id, entries)
    return after if _begins(event) else _running(after)


def _begins(event: Event) -> bool:
    return isinstance(event.data, PlaSessionBegan)


def _running(session: Session) -> Session:
    return replace(session, state="running") if session.state == "queued" else session


def _moved(session: Session, event: Event) -> Session:
    """The event's changes beside the entries."""
    carried = session.carried
    if session.outside:
        return session
    match event.data:
        case PlaSessionBegan(mode=mode) | PlaModeChanged(mode=mode):
            return replace(session, mode=mode)
        case PlaSessionEnded(state=state, reason=reason):
            return replace(session, state=state, reason=reason)
        case PlaExecutionRequested(execution_id=name, proposal_id=proposal, operator_id=who):
            return replace(session, carried=Carried(name, proposal, operator(who)))
        case PlaExecuted(execution_id=name) | HidOutcomeUnknown(execution_id=name):
            if carried is not None and carried.execution_id == name:
                return replace(session, carried=replace(carried, settled=True))
        case PlaProposalClosed(outcome="unknown", proposal_id=name):
            if carried is not None and carried.proposal_id == name:
                return replace(session, carried=replace(carried, settled=True))
    return session


def _with_entries(session: Session, event: Event, sum: str, log_id: str, entries: list[Entry]) -> Session:
    """With these entries in the log, and in the violations what is one."""
    log, violations = session.log, session.violations
    for number, one in enumerate(entries, 1):
        entry: dict[str, Any] = {
            "log_id": f"log-{log_id[:ID_CHARS]}-{event.position}-{number}",
            "timestamp": event.time,
            "event_type": one.type,
            "mode": session.mode,
            "operator_id": one.operator_id,
            "details": {**log_reference(event, sum), **_without_empty(one.details), **_elsewhere(session, event)},
        }
        ids = {"proposal_id": known_id(one.proposal_id), "execution_id": known_id(one.execution_id)}
        entry |= {name: value for name, value in ids.items() if value}
        log = log.added(entry)
        if one.violation:
            violations = violations.added(entry)
    tally = _counted(session.tally, entries)
    return replace(session, updated=event.time, log=log, violations=violations, tally=tally)


def _without_empty(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if value != ""}


def _elsewhere(session: Session, event: Event) -> dict[str, str]:
    """Outside of sessions: which one the event names."""
    named = getattr(event.data, "session_id", "") if session.outside else ""
    return {"session_id": words(named, WORD_CHARS)} if named else {}


_COUNTED: Final = {
    "APPROVED": "approved",
    "REJECTED": "rejected",
    "done": "executed",
    "aborted": "aborted",
    "not_executed": "not_executed",
    "unknown": "unknown",
}
"""A decision, or the outcome of an execution -> where it is counted."""


def _counted(tally: Tally, entries: list[Entry]) -> Tally:
    changed: dict[str, int] = {}
    for one in entries:
        name = _counter(one)
        if name:
            changed[name] = changed.get(name, getattr(tally, name)) + 1
    return replace(tally, **changed) if changed else tally


def _counter(one: Entry) -> str:
    """Where an entry is counted; "" for nowhere."""
    match one.type:
        case "PROPOSAL":
            return "proposals"
        case "ERROR":
            return "errors"
        case "DECISION":
            return _COUNTED.get(one.details.get("decision", ""), "")
        case "EXECUTION":
            return _COUNTED.get(one.details.get("outcome", ""), "")
        case "MODE_CHANGE":
            return ""
