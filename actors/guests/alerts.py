"""Guests' alerts, and the request for a decision; pure (docs/guests.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pmagent.actors.core.alerts import Alert, Asked, Judged, Judges, Over, reasons
from pmagent.events.event import Event

REQUEST: Final = "guest_waits"
UNSEEN: Final = "guest_unseen"


def _asked(_: Event) -> Iterator[Judged]:
    yield Asked()


def _waits(event: Event) -> Iterator[Judged]:
    data = event.data
    yield Alert(
        kind=REQUEST, severity="request", title="An agent's call waits for a decision", subject=str(data.approval),
        detail=f"{event.correlation}: {data.tool}", page=f"/agents/calls/{data.approval}",
    )  # fmt: skip


def _given(event: Event) -> Iterator[Judged]:
    if event.data.given >= event.data.needed:
        yield Over(REQUEST, str(event.data.approval))


def _over(event: Event) -> Iterator[Judged]:
    yield Over(REQUEST, str(event.data.approval))


def _unseen(event: Event) -> Iterator[Judged]:
    yield Alert(
        kind=UNSEEN, severity="bad", title="An agent's call went past the gate", subject=event.correlation,
        detail=f"{event.data.tool} {event.data.call}".rstrip(), page=f"/agents/{event.correlation}",
    )  # fmt: skip


def _changed(event: Event) -> Iterator[Judged]:
    data = event.data
    yield Alert(
        kind="guest_changed", severity="warn" if data.refused else "bad",
        title="An agent's settings were to be changed" if data.refused else "An agent's settings have changed",
        subject=event.correlation, detail=f"{data.what} {data.path}".rstrip(), page=f"/agents/{event.correlation}",
    )  # fmt: skip


def _defined(event: Event) -> Iterator[Judged]:
    data = event.data
    wider = [f"{one.kind} {one.name} {one.how}: {one.text}".rstrip(": ") for one in data.changes if one.widens]
    if wider:
        yield Alert(
            kind="guest_definitions", severity="bad", title="An agent's servers, plugins or hooks have changed",
            subject=data.session, detail=reasons(wider), page=f"/agents/{data.session}",
        )  # fmt: skip


def _policy(event: Event) -> Iterator[Judged]:
    broken = [layer.problem for layer in event.data.policy.layers if layer.problem]
    if broken:
        yield Alert(kind="policy_unusable", severity="bad", title="A policy cannot be used", detail=reasons(broken))
    else:
        yield Over("policy_unusable")


ALERTS: Final[Judges] = {
    "guest.answer_requested": _asked,
    "guest.approval_asked": _waits,
    "guest.approval_expired": _over,
    "guest.approval_given": _given,
    "guest.approval_rejected": _over,
    "guest.approval_used": _over,
    "guest.call_unseen": _unseen,
    "guest.changed": _changed,
    "guest.definitions_changed": _defined,
    "guest.end_unmatched": _unseen,
    "guest.policy_edit_requested": _asked,
    "guest.policy_read": _policy,
}
