"""The operations on alerts: what is open, and acknowledging one (docs/console.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

import anyio
import anyio.to_thread
import msgspec
from msgspec import Meta

from pmagent.actors.alerts.actor import NAME, AlertsState, Open
from pmagent.actors.core.engine import Engine
from pmagent.contracts.alerts import AlertAcknowledged, AlertAcknowledgeRequested
from pmagent.contracts.control import OperatorId, Why
from pmagent.events.errors import PmagentError
from pmagent.service.answer import Answer, request_of
from pmagent.service.folding import folded
from pmagent.service.host import Host

LIST: Final = "alerts.list"
ACKNOWLEDGE: Final = "alerts.acknowledge"
NEWEST: Final = 10
"""So many open alerts stand in the status, the gravest first."""


class BadAlerts(PmagentError, exit_code=2):
    """The arguments make no request; nothing was recorded."""


class _Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    operator: OperatorId
    alert: Annotated[int, Meta(ge=1)]
    channel: Literal["cli", "console", "api"] = "api"
    note: Why = ""


def state_of(engine: Engine) -> AlertsState:
    """The alerts' state."""
    state: AlertsState = engine.states[NAME]
    return state


def status(engine: Engine) -> dict[str, Any]:
    """Its part of the status: how many are open by severity, and the gravest of them."""
    state = state_of(engine)
    return {"alerts": {**_counts(state), "newest": [_plain(one) for one in state.ranked[:NEWEST]]}}


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
    given = {name: value for name, value in arguments.items() if name != "request"}
    try:
        asked = msgspec.convert(given, _Arguments)
    except msgspec.ValidationError as error:
        raise BadAlerts(f"this cannot be acknowledged: {error}", "pmagent alerts --help") from error
    payload = AlertAcknowledgeRequested(
        alert=asked.alert, note=asked.note, operator_id=asked.operator, channel=asked.channel
    )
    draft = await anyio.to_thread.run_sync(host.drafted, payload, request_of(arguments, ACKNOWLEDGE))
    answers = {"alert.acknowledged", "alert.acknowledge_refused"}
    event = await host.ask_draft(draft, answers, whole=True, shown=False)
    done = isinstance(event.data, AlertAcknowledged)
    fields: dict[str, Any] = msgspec.to_builtins(event.data)
    return Answer(document={"acknowledged": done, **fields, "position": event.position}, exit_code=0 if done else 1)


def _counts(state: AlertsState) -> dict[str, int]:
    found = {"urgent": 0, "request": 0, "bad": 0, "warn": 0}
    for one in state.open.values():
        found[one.severity] += 1
    return found


def _plain(one: Open) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(one)
    return plain
