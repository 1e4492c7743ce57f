"""The operations on audits: asking for one, taking one back (docs/design.md §11.2).

An audit's id is its request's id, so a request that is sent again, after a lost connection, is the same audit.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from contracts.audit_events import AuditCancelRequested, AuditRequested
from pmagent.answer import Answer
from pmagent.audit.source import BadAudit
from pmagent.host import Host
from pmagent.jobs.kinds import AUDITS, cancelling
from pmagent.oa.asking import OBSERVED_SECONDS

RUN: Final = AUDITS.ask
CANCEL: Final = AUDITS.cancel


async def run(host: Host, arguments: dict[str, Any]) -> Answer:
    """Ask for an audit: ``{audit_id, position, end}``, as soon as the request is durable. ``end`` is the type of the
    event that ended it, where one did at once, else null.

    Raises BadAudit, BadRubric, Misplaced, ModelUnavailable (nothing is recorded then), RequestReused, OutcomeUnknown.
    """
    from pmagent.audit.request import check_masked, checked  # with the audit's models, which nobody else needs

    # What the auditor decides with takes its time to import; nobody who waits for the daemon waits for that.
    await anyio.to_thread.run_sync(import_module, "actors.audit.progress")
    asked = await anyio.to_thread.run_sync(checked, _as_request(arguments), host.layout.workspace)
    for name in (asked.model, asked.vision_model):
        if name:
            host.models.check("langchain", name)
    with anyio.move_on_after(OBSERVED_SECONDS):  # a mode that nobody knows forbids an audit nothing: it only looks
        await host.first_observed()
    try:
        draft = await anyio.to_thread.run_sync(host.drafted, asked, asked.audit_id)
    except msgspec.ValidationError as error:  # a mask may be longer than the secret in whose place it stands
        what = f"with its secrets masked, this is no audit that can be asked for: {error}"
        raise BadAudit(what, "ask with fewer secrets") from error
    check_masked(asked, draft.data)
    position = await host.tell_draft(draft)
    over = not is_open(host, asked.audit_id)
    end = await host.answer_in_log(position, draft.correlation, AUDITS.ends) if over else None
    if end is not None:
        await host.flush()
    document = {"audit_id": asked.audit_id, "position": position, "end": None if end is None else end.type}
    return Answer(document=document)


async def cancel(host: Host, arguments: dict[str, Any]) -> Answer:
    """Take an audit back: ``{audit_id, accepted, text}``; exit code 1 when it is not open any more."""
    try:
        asked = msgspec.convert(cancelling(arguments), AuditCancelRequested)
    except msgspec.ValidationError as error:
        raise BadAudit(f"this is no request to cancel an audit: {error}", "it needs audit_id") from error
    request = arguments.get("request")
    if not isinstance(request, str) or not request.startswith(f"{CANCEL}-"):
        raise BadAudit("the request id is missing", f"it begins with {CANCEL}-")
    event = await host.ask_draft(host.drafted(asked, request), {"audit.cancel_answered"}, shown=False)
    answered = event.data
    document = {"audit_id": answered.audit_id, "accepted": answered.accepted, "text": answered.text}
    return Answer(document=document, exit_code=0 if answered.accepted else 1)


def open_audits(host: Host) -> list[str]:
    """The ids of the audits that are open, oldest first."""
    return list(host.runtime.engine.states["auditor"].audits)


def is_open(host: Host, audit_id: str) -> bool:
    """Whether the audit was taken and has not ended."""
    return audit_id in open_audits(host)


def _as_request(arguments: dict[str, Any]) -> AuditRequested:
    fields = {name: value for name, value in arguments.items() if name != "request"}
    try:
        return msgspec.convert(fields, AuditRequested)
    except msgspec.ValidationError as error:
        what = f"this is no audit that can be asked for: {error}"
        raise BadAudit(what, "pmagent audit makes a good request") from error
