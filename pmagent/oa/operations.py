"""The operations of the OA: snapshots, sessions, permits, the context (docs/design.md §12)."""

from __future__ import annotations

import math
import uuid
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from pmagent.actors.oa.context import PATH as CONTEXT_PATH
from pmagent.actors.oa.context import unfit
from pmagent.contracts.oa import (
    OaBootRefused,
    OaBootRequested,
    OaPermitGranted,
    OaPermitReleased,
    OaPermitReleaseRequested,
    OaPermitRequested,
    OaSessionBooted,
    OaSnapshotRequested,
)
from pmagent.contracts.oa_documents import SnapshotAnswer, StateDocument
from pmagent.contracts.reasoning_events import OaContextRequested
from pmagent.events.errors import PmagentError
from pmagent.oa.context import reading_here
from pmagent.oa.kernel_view import view_here
from pmagent.oa.requests import OBSERVED_SECONDS
from pmagent.projections.core.projection import ProjectionHalted
from pmagent.projections.oa.answers import boot_answer, boot_refusal, snapshot_answer
from pmagent.projections.oa.state import PATH as STATE_PATH
from pmagent.projections.oa.state import OaState
from pmagent.service.answer import Answer, BadOperation, request_of, understood
from pmagent.service.host import Host


async def snapshot(host: Host, arguments: dict[str, Any]) -> Answer:
    """``pmagent oa snapshot``: exactly ``{success, path, state}``; with ``error`` when it is refused
    (docs/design.md §12.3)."""
    event = await host.ask(OaSnapshotRequested(), request_of(arguments, "oa.snapshot"), {"oa.snapshot_taken"})
    part = host.documents.every().get(STATE_PATH)
    rendered = part.guarded(part.content, None) if part is not None else None
    try:
        host.require_current(OaState.name)
    except ProjectionHalted as error:
        return no_snapshot(error)
    state = msgspec.json.decode(rendered, type=StateDocument) if isinstance(rendered, bytes) else None
    answer = snapshot_answer(event.data, state)
    if answer.success and host.unwritten is not None:  # asked for again: the answer is known, but the file is not there
        raise host.unwritten
    return Answer(document=msgspec.to_builtins(answer), exit_code=0 if answer.success else 1)


async def boot(host: Host, arguments: dict[str, Any]) -> Answer:
    """``pmagent boot oa``: the boot envelope, or the refusal with its reasons and exit code 1
    (docs/design.md §12.4)."""
    request = request_of(arguments, "boot.oa")
    session = uuid.uuid5(uuid.NAMESPACE_OID, request)  # the same request, sent again, is the same session
    asked = OaBootRequested(session_id=f"oa-session-{session}", workspace=str(host.layout.workspace))
    host.require_current(OaState.name)  # a session begins with STATE.json
    event = await host.ask(asked, request, {"oa.session_booted", "oa.boot_refused"})
    host.require_current(OaState.name)
    if isinstance(event.data, OaBootRefused):
        return Answer(document=msgspec.to_builtins(boot_refusal(event.data)), exit_code=1)
    booted: OaSessionBooted = event.data
    warnings = [f"the kernel is {booted.mode}: {reason.text}" for reason in booted.reasons if reason.mode != "NORMAL"]
    return Answer(document=msgspec.to_builtins(boot_answer(booted, event.time)), warnings=warnings)


async def permit(host: Host, arguments: dict[str, Any]) -> Answer:
    """Ask the OA for a permit: ``{granted, position, …}``; exit code 1 with reasons when it is refused."""
    what, needed = "this is no request for a permit", "it needs action, subject, holder"
    asked = understood(arguments, OaPermitRequested, BadOperation, what, needed)
    if not math.isfinite(asked.seconds):
        raise BadOperation("seconds must be a number", "ask for as many as the work needs")
    event = await host.ask(asked, request_of(arguments, "oa.permit"), {"oa.permit_granted", "oa.permit_refused"})
    granted = isinstance(event.data, OaPermitGranted)
    document = {"granted": granted, "position": event.position, **msgspec.to_builtins(event.data)}
    return Answer(document=document, exit_code=0 if granted else 1)


async def permits(host: Host, _: dict[str, Any]) -> Answer:
    """The live permits, oldest first: the position that granted each, what it is for, whose it is, and until when."""
    now = host.runtime.now()
    found = host.runtime.engine.states["gate"].permits
    live = {at: permit for at, permit in found.items() if permit.uses_left > 0 and now < permit.expires_at}
    return Answer(document={"permits": [{"position": at, **msgspec.to_builtins(one)} for at, one in live.items()]})


async def permit_release(host: Host, arguments: dict[str, Any]) -> Answer:
    """Give a permit back: ``{released, permit, …}``; exit code 1 with reasons when it is not live, or another's."""
    what, needed = "this is no release of a permit", "it needs permit and holder"
    asked = understood(arguments, OaPermitReleaseRequested, BadOperation, what, needed)
    answers = {"oa.permit_released", "oa.permit_release_refused"}
    event = await host.ask(asked, request_of(arguments, "oa.permit_release"), answers)
    released = isinstance(event.data, OaPermitReleased)
    return Answer(document={"released": released, **msgspec.to_builtins(event.data)}, exit_code=0 if released else 1)


async def view(host: Host, _: dict[str, Any]) -> Answer:
    """The workspace as envelopes show it: ``{view, context}``, the latter CONTEXT.json's reading; for those who are on
    another machine: secrets are masked, as in the log. Raises ProjectionHalted, DocumentUnwritable."""

    def look() -> dict[str, Any]:
        found = {"view": view_here(host.layout.workspace), "context": reading_here(host.layout.workspace)}
        plain: dict[str, Any] = host.runtime.intake.redactor.value(msgspec.to_builtins(found))
        return plain

    return Answer(document=await anyio.to_thread.run_sync(look))


async def context(host: Host, arguments: dict[str, Any]) -> Answer:
    """Write CONTEXT.json, if it still is what ``base`` says: ``{success, path, sha256, error, mend, …}``; exit code 1
    when it was not written."""
    what, needed = "this is no request for a context", "it needs context and base"
    asked = understood(arguments, OaContextRequested, BadOperation, what, needed)
    if lack := unfit(asked.context, asked.base):
        raise BadOperation(f"{CONTEXT_PATH} was not written: {lack}", "pmagent oa context --help describes contexts")
    with anyio.move_on_after(OBSERVED_SECONDS):  # without a mode it would be refused, and we may just have started
        await host.ready()
    draft = await anyio.to_thread.run_sync(host.drafted, asked, request_of(arguments, "oa.context"))
    event = await host.ask_draft(draft, {"oa.context_answered"})
    document = {"path": CONTEXT_PATH, **msgspec.to_builtins(event.data)}
    return Answer(document=document, exit_code=0 if event.data.success else 1)


def no_snapshot(error: PmagentError) -> Answer:
    """The refusal of a snapshot, of the contract's shape."""
    text = f"{error.message} (mend: {error.hint})"
    refused = SnapshotAnswer(success=False, path=STATE_PATH, state=None, error=text)
    return Answer(document=msgspec.to_builtins(refused), exit_code=error.exit_code)
