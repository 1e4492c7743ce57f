"""The operations on alerts: what is open, and acknowledging one (docs/console.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import anyio
import anyio.to_thread
import msgspec
from msgspec import Meta

from pmagent.actors.alerts.actor import NAME, AlertsState, Open
from pmagent.actors.alerts.core import HANDOVER
from pmagent.actors.core.engine import Engine
from pmagent.contracts.alerts import HANDOVER_CHARS_MAX, AlertAcknowledged, AlertAcknowledgeRequested, HandedOver
from pmagent.contracts.control import OperatorId, Why
from pmagent.events.errors import PmagentError
from pmagent.service.answer import Answer, request_of, understood
from pmagent.service.folding import folded
from pmagent.service.host import Host

ACKNOWLEDGE: Final = "alerts.acknowledge"
HAND_OVER: Final = "alerts.handover"
NEWEST: Final = 10
"""So many open alerts stand in the status, the gravest first."""


class BadAlerts(PmagentError, exit_code=2):
    """The arguments make no request; nothing was recorded."""


class _Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    operator: OperatorId
    alert: Annotated[int, Meta(ge=1)]
    channel: Literal["cli", "console", "api"] = "api"
    note: Why = ""


class _Handover(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    operator: OperatorId
    text: Annotated[str, Meta(min_length=1, max_length=HANDOVER_CHARS_MAX)]
    channel: Literal["cli", "console", "api"] = "api"


def state_of(engine: Engine) -> AlertsState:
    """The alerts' state."""
    state: AlertsState = engine.states[NAME]
    return state


def status(engine: Engine) -> dict[str, Any]:
    """Its part of the status: how many are open by severity, the gravest of them, and where hand-over notes stand."""
    state = state_of(engine)
    newest = [_plain(one) for one in state.ranked[:NEWEST]]
    notes = [one.position for one in state.ranked if one.kind == HANDOVER][:NEWEST]
    return {"alerts": {**_counts(state), "newest": newest, "handover": notes}}


def document(engine: Engine) -> dict[str, Any]:
    """``{counts, open, acknowledged, newest, given_up}``: all open alerts, the gravest first; how many have been
    acknowledged, and the position of the newest acknowledgement."""
    state = state_of(engine)
    return {
        "counts": _counts(state), "open": [_plain(one) for one in state.ranked], "acknowledged": state.acknowledged,
        "newest": state.newest, "given_up": state.given_up,
    }  # fmt: skip


async def listing(host: Host, _: dict[str, Any]) -> Answer:
    """The open alerts."""
    return Answer(document=document(host.runtime.engine))


def listing_alone(workspace: Path, _name: str, _arguments: dict[str, Any]) -> Answer:
    """``listing`` of the workspace's log. Raises CorruptLog, HistoryError."""
    with folded(workspace) as (engine, _, _):
        return Answer(document=document(engine))


async def acknowledge(host: Host, arguments: dict[str, Any]) -> Answer:
    """Acknowledge an alert: ``{acknowledged: true, alert, title, …}``, or the refusal's reasons and exit code 1. Raises
    BadAlerts, BadOperation, Refused, TimedOut."""
    asked = understood(arguments, _Arguments, BadAlerts, "this cannot be acknowledged", "pmagent alerts --help")
    payload = AlertAcknowledgeRequested(
        alert=asked.alert, note=asked.note, operator_id=asked.operator, channel=asked.channel
    )
    draft = await anyio.to_thread.run_sync(host.drafted, payload, request_of(arguments, ACKNOWLEDGE))
    answers = {"alert.acknowledged", "alert.acknowledge_refused"}
    event = await host.ask_draft(draft, answers, whole=True, shown=False)
    done = isinstance(event.data, AlertAcknowledged)
    fields: dict[str, Any] = msgspec.to_builtins(event.data)
    return Answer(document={"acknowledged": done, **fields, "position": event.position}, exit_code=0 if done else 1)


async def hand_over(host: Host, arguments: dict[str, Any]) -> Answer:
    """Leave a note for the next operator: ``{position}``. Raises BadAlerts, BadOperation."""
    asked = understood(arguments, _Handover, BadAlerts, "this is no hand-over note", "pmagent handover --help")
    payload = HandedOver(operator_id=asked.operator, channel=asked.channel, text=asked.text)
    draft = await anyio.to_thread.run_sync(host.drafted, payload, request_of(arguments, HAND_OVER))
    return Answer(document={"position": await host.tell_draft(draft)})


def _counts(state: AlertsState) -> dict[str, int]:
    found = {"urgent": 0, "request": 0, "bad": 0, "warn": 0}
    for one in state.open.values():
        found[one.severity] += 1
    return found


def _plain(one: Open) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(one)
    return plain
