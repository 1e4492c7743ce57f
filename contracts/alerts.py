"""Acknowledging alerts: an operator has taken note of one, by name and with a note; and notes for who comes next."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from pmagent.contracts.control import REASON_CHARS_MAX, Channel, OperatorAct, OperatorId, Severity
from pmagent.contracts.payload import Payload, event_type

HANDOVER_CHARS_MAX = 2000


@event_type("alert.handed_over")
class HandedOver(OperatorAct, frozen=True, kw_only=True):
    """An operator's shift ends: ``text`` tells the next operator what waits and what to watch. It is an open alert,
    which stays until somebody acknowledges it."""

    text: Annotated[str, Meta(min_length=1, max_length=HANDOVER_CHARS_MAX)]


@event_type("alert.acknowledge_requested", request=True)
class AlertAcknowledgeRequested(OperatorAct, frozen=True, kw_only=True):
    """An operator has taken note of the alert whose newest event stands at position ``alert``; ``note`` says how."""

    alert: Annotated[int, Meta(ge=1)]
    note: Annotated[str, Meta(max_length=REASON_CHARS_MAX)]


@event_type("alert.acknowledged")
class AlertAcknowledged(Payload, frozen=True, kw_only=True):
    """Answer to the request at position ``request``: the alert is open no more. The alert as it was: its events stand
    at positions ``first`` to ``alert``, ``count`` of them. ``number``: how many have been acknowledged by now;
    ``previous``: the position of the acknowledgement before this one, 0 for the first."""

    request: int
    alert: int
    first: int
    count: int
    kind: str
    severity: Severity
    subject: str
    title: str
    detail: str
    page: str
    operator_id: OperatorId
    channel: Channel
    note: str
    number: int
    previous: int


@event_type("alert.acknowledge_refused")
class AlertAcknowledgeRefused(Payload, frozen=True, kw_only=True):
    """Answer to the request at position ``request``: nothing is acknowledged. ``code``: unknown (no open alert stands
    there), again (it has happened again since), request (it waits for a decision), note (there is none)."""

    request: int
    code: Literal["unknown", "again", "request", "note"]
    reasons: list[str]
    mend: list[str]
