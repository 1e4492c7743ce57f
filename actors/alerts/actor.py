"""The alerts' actor: folds what is open, and answers acknowledgements; pure.

Its state is bounded: of one kind and subject one alert is open, acknowledged ones are counted and stand in the log
alone, and beyond ``OPEN_MAX`` the oldest of the least severe is given up, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Final, Literal

import msgspec

from pmagent.actors.areas import AREAS
from pmagent.actors.core.alerts import DETAIL_CHARS_MAX, Alert, Asked, Judge, Over
from pmagent.actors.core.area import load
from pmagent.contracts.alerts import AlertAcknowledged, AlertAcknowledgeRefused, AlertAcknowledgeRequested
from pmagent.contracts.payload import Payload, types
from pmagent.events.event import Event

NAME: Final = "alerts"
OPEN_MAX: Final = 500

RANKS: Final = ("urgent", "request", "bad", "warn")
"""Severities, the gravest first."""


class Open(Alert, frozen=True, kw_only=True):
    """An open alert. ``position`` and ``time`` are its newest event's, ``first`` and ``since`` its oldest one's, of
    ``count`` events."""

    position: int
    time: str
    first: int
    since: str
    count: int = 1


class AlertsState(msgspec.Struct, frozen=True):
    """``open``: by kind and subject. ``asked``: the position of the newest request of an operator. ``acknowledged``:
    how many were, ``newest``: where the last was; ``given_up``: how many there was no room for."""

    open: dict[str, Open] = {}
    asked: int = 0
    acknowledged: int = 0
    newest: int = 0
    given_up: int = 0

    @property
    def ranked(self) -> list[Open]:
        """The gravest first, and of those the newest."""
        return sorted(self.open.values(), key=lambda one: (RANKS.index(one.severity), -one.position))


def _judges() -> dict[str, Judge]:
    found: dict[str, Judge] = {}
    for area in (area for area in AREAS if area.alerts):
        for module in area.contracts:  # of the events that are judged: an actor hears their types
            import_module(module)
        found.update(load(area.alerts))
    return found


JUDGES: Final = _judges()
"""Those of all areas, by event type."""
ALERTING: Final = (*JUDGES, "alert.acknowledged")
"""The types of events by which open alerts change."""

replace = msgspec.structs.replace


class Alerts:
    """See the module."""

    name = NAME

    def __init__(self) -> None:
        known = types()
        heard: tuple[type[msgspec.Struct], ...] = (AlertAcknowledgeRequested, *(known[name] for name in JUDGES))
        self.hears: frozenset[type[msgspec.Struct]] = frozenset(heard)

    def initial(self) -> AlertsState:
        """Nothing is open."""
        return AlertsState()

    def evolve(self, state: AlertsState, event: Event) -> AlertsState:
        """Fold an event that a judge knows, or an acknowledgement."""
        if isinstance(event.data, AlertAcknowledged) and event.actor == NAME:
            left = {key: one for key, one in state.open.items() if one.position != event.data.alert}
            return replace(state, open=left, acknowledged=event.data.number, newest=event.position)
        judge = JUDGES.get(event.type)
        for judged in judge(event) if judge is not None else ():
            state = _after(state, event, judged)
        return state

    def decide(self, state: AlertsState, event: Event) -> Iterable[Payload]:
        """The answer to an acknowledgement."""
        asked = event.data
        if not isinstance(asked, AlertAcknowledgeRequested) or event.kind != "fact":
            return
        at = asked.alert
        found = next((one for one in state.open.values() if one.first <= at <= one.position), None)
        refusal = _refusal(found, asked)
        if found is None or found.severity == "request" or refusal is not None:
            code, reason, mend = refusal or _UNKNOWN
            yield AlertAcknowledgeRefused(request=event.position, code=code, reasons=[reason], mend=[mend])
            return
        yield AlertAcknowledged(
            request=event.position, alert=found.position, first=found.first, count=found.count, kind=found.kind,
            severity=found.severity, subject=found.subject, title=found.title, detail=found.detail, page=found.page,
            operator_id=asked.operator_id, channel=asked.channel, note=asked.note, number=state.acknowledged + 1,
            previous=state.newest,
        )  # fmt: skip


Refusal = tuple[Literal["unknown", "again", "request", "note"], str, str]
_UNKNOWN: Final[Refusal] = ("unknown", "no open alert has this number", "pmagent alerts lists those that are open")


def _refusal(found: Open | None, asked: AlertAcknowledgeRequested) -> Refusal | None:
    """Why nothing is acknowledged. An alert between whose events ``asked.alert`` lies is not taken for another."""
    if found is None:
        return _UNKNOWN
    if found.severity == "request":
        shows = f"pmagent approvals show {found.subject}" if found.kind == "guest_waits" else "pmagent pla show"
        return "request", "it waits for a decision, and is over with it", f"{shows}, and approve or reject it"
    if asked.alert != found.position:
        return "again", f"it has happened again since: its newest event is {found.position}", (
            f"look at it, then pmagent alerts --ack {found.position} --note TEXT"
        )
    if not asked.note.strip():
        return "note", "an acknowledgement needs a note", "--note TEXT says how it was dealt with"
    return None


def _after(state: AlertsState, event: Event, judged: Alert | Over | Asked) -> AlertsState:
    match judged:
        case Asked():
            return replace(state, asked=event.position)
        case Over(kind=kind, subject=subject):
            ends = [key for key, one in state.open.items() if one.kind == kind and subject in ("", one.subject)]
            return replace(state, open=_without(state.open, ends)) if ends else state
        case Alert(severity=severity):
            at_once = event.kind == "decision" and event.causation == state.asked > 0
            return state if at_once and severity != "request" else _opened(state, event, judged)


def _opened(state: AlertsState, event: Event, alert: Alert) -> AlertsState:
    key = f"{alert.kind} {alert.subject}"
    before = state.open.get(key)
    if before is not None and before.severity == alert.severity == "urgent" and alert.subject:
        return state  # the same thing, told once more
    fields = {name: getattr(alert, name) for name in Alert.__struct_fields__}
    fields["detail"] = alert.detail[:DETAIL_CHARS_MAX]
    opened = Open(
        **fields, position=event.position, time=event.time, first=before.first if before else event.position,
        since=before.since if before else event.time, count=before.count + 1 if before else 1,
    )  # fmt: skip
    kept = {**_without(state.open, [key]), key: opened}
    if len(kept) <= OPEN_MAX:
        return replace(state, open=kept)
    least = max(kept, key=lambda one: (RANKS.index(kept[one].severity), -kept[one].position))
    return replace(state, open=_without(kept, [least]), given_up=state.given_up + 1)


def _without(alerts: dict[str, Open], keys: Iterable[str]) -> dict[str, Open]:
    gone = set(keys)
    return {key: one for key, one in alerts.items() if key not in gone}
