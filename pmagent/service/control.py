"""The operations of the stop switch, and of who comes to the console (docs/design.md §6)."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import anyio
import anyio.to_thread
import msgspec
from msgspec import Meta

from pmagent.contracts.control import (
    Checked,
    OperatorId,
    PasskeyAdded,
    PauseRequested,
    ResumeRequested,
    SignedIn,
    SignedOut,
    SignInRefused,
    Why,
)
from pmagent.contracts.payload import Payload, type_of
from pmagent.events.errors import PmagentError
from pmagent.service.answer import Answer, understood
from pmagent.service.host import Host

PAUSE: Final = "control.pause"
RESUME: Final = "control.resume"
NOTE: Final = "console.note"
CHECKED: Final = "console.checked"


class BadControl(PmagentError, exit_code=2):
    """The request is none that the stop switch or the console has; nothing was recorded."""


_BAD: Final = (BadControl, "this cannot be asked", "pmagent pause --help")


class _Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    operator: OperatorId
    channel: Literal["cli", "console", "api"] = "api"
    reason: Why = ""


class _Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    operator: Annotated[str, Meta(max_length=64)]
    what: Literal["signed_in", "signed_out", "refused", "passkey_added"]
    by: Annotated[str, Meta(max_length=32)] = ""
    reason: Why = ""


async def pause(host: Host, arguments: dict[str, Any]) -> Answer:
    """Pause new outward effects, and disarm: ``{paused: true, since, operator_id, …}``; of effects that are paused
    already, since when. Raises BadControl, Refused, TimedOut."""
    asked = understood(arguments, _Arguments, *_BAD)
    payload = PauseRequested(operator_id=asked.operator, channel=asked.channel, reason=asked.reason)
    return await _ask(host, payload, arguments, "control.paused", paused=True)


async def resume(host: Host, arguments: dict[str, Any]) -> Answer:
    """Let effects start again, first those that were held: ``{paused: false, since, held, …}``. Raises as ``pause``."""
    asked = understood(arguments, _Arguments, *_BAD)
    payload = ResumeRequested(operator_id=asked.operator, channel=asked.channel, reason=asked.reason)
    return await _ask(host, payload, arguments, "control.resumed", paused=False)


async def note(host: Host, arguments: dict[str, Any]) -> Answer:
    """Record who signed in to the console or out, or was refused: ``{position}``. Raises BadControl."""
    asked = understood(arguments, _Note, *_BAD)
    made: Payload
    if asked.what == "signed_in":
        made = SignedIn(operator_id=asked.operator, by=asked.by)
    elif asked.what == "signed_out":
        made = SignedOut(operator_id=asked.operator, by=asked.by)
    elif asked.what == "passkey_added":
        made = PasskeyAdded(operator_id=asked.operator, by=asked.by, reason=asked.reason)
    else:
        made = SignInRefused(operator_id=asked.operator, by=asked.by, reason=asked.reason)
    draft = await anyio.to_thread.run_sync(host.drafted, made, _request(arguments, NOTE))
    return Answer(document={"position": await host.tell_draft(draft), "type": type_of(made)})


async def checked(host: Host, arguments: dict[str, Any]) -> Answer:
    """Record what came of a check that an operator asked for: ``{position}``. Raises BadControl."""
    made = understood(arguments, Checked, *_BAD)
    draft = await anyio.to_thread.run_sync(host.drafted, made, _request(arguments, CHECKED))
    return Answer(document={"position": await host.tell_draft(draft)})


async def _ask(host: Host, payload: Payload, arguments: dict[str, Any], answer: str, *, paused: bool) -> Answer:
    kind = PAUSE if paused else RESUME
    draft = await anyio.to_thread.run_sync(host.drafted, payload, _request(arguments, kind))
    event = await host.ask_draft(draft, {answer}, whole=True, shown=False)
    fields: dict[str, Any] = msgspec.to_builtins(event.data)
    return Answer(document={"paused": paused, **fields, "position": event.position, "time": event.time})


def _request(arguments: dict[str, Any], kind: str) -> str:
    request = arguments.get("request")
    if not isinstance(request, str) or not request.startswith(f"{kind}-") or ":" in request or len(request) > 200:
        raise BadControl("the request id is missing", f"it begins with {kind}-")
    return request
