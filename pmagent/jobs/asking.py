"""The operations on jobs: asking for one, taking one back, waiting for the documents (docs/design.md §11.2).

A job's id is its request's id, so a request that is sent again, after a lost connection, is the same job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from operator import attrgetter
from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from pmagent.actors.audit.actor import not_resumable
from pmagent.actors.model.models import Models
from pmagent.actors.oa.policy import CARE
from pmagent.actors.sandbox.bubblewrap import bubblewrap
from pmagent.audit.carrying import carried, dropped, received
from pmagent.audit.source import BadAudit
from pmagent.contracts.audit_events import AuditRequested
from pmagent.contracts.orchestra_events import RunRequested
from pmagent.contracts.payload import Payload
from pmagent.events.errors import PmagentError
from pmagent.jobs.kinds import AUDITS, RUNS, Kind
from pmagent.oa.requests import OBSERVED_SECONDS, KernelUnread
from pmagent.orchestra.request import BadRun
from pmagent.orchestra.request import checked as checked_run
from pmagent.projections.core.projection import ProjectionHalted
from pmagent.service.answer import Answer, understood
from pmagent.service.client import new_request
from pmagent.service.host import Host, asker
from pmagent.service.requests import FAR
from pmagent.workspace.trust import require_covers

WRITTEN: Final = "orchestra.written"


class Edge(msgspec.Struct, frozen=True):
    """The world's part in asking for a job of this kind. ``bad`` is the error of a request that is none;
    ``prepared``: the request as it may be recorded, once the job can begin; ``masked`` looks at what masking made of
    it; ``secrets``: what helps where masking made it too long. ``carried``: the operation's arguments as they are sent
    to another machine; blocking."""

    kind: Kind
    bad: type[PmagentError]
    prepared: Callable[[Host, Any], Awaitable[Any]]
    masked: Callable[[Any, Any], None] = lambda _asked, _drafted: None
    secrets: str = "ask with fewer secrets"
    carried: Callable[[dict[str, Any]], dict[str, Any]] = dict


async def _prepared_run(host: Host, asked: RunRequested) -> RunRequested:
    """The request as it may be recorded. Raises BadRun, BadConfig, NotAccepted, KernelUnread, SandboxUnavailable."""
    workspace = host.layout.workspace
    await anyio.to_thread.run_sync(_check_repeats, host, asked)
    asked = await anyio.to_thread.run_sync(checked_run, asked, workspace)
    await anyio.to_thread.run_sync(require_covers, workspace, asked.config, "the run")
    if not (asked.plan_only or asked.dry_run):
        await anyio.to_thread.run_sync(bubblewrap)  # without one no task could begin
    await _known_mode(host, asked)
    return asked


def _check_repeats(host: Host, asked: RunRequested) -> None:
    """A run takes results only from the run that it repeats, by the same plan. Raises NotRepeatable, BadRun,
    NoSuchJob."""
    if asked.earlier is None:
        return
    from pmagent.jobs.catalogue import ALL, Catalogue
    from pmagent.jobs.history import opened
    from pmagent.orchestra.repeating import repeated

    entry = Catalogue(host.layout).called([RUNS], asked.earlier.run_id, ALL)
    with opened(host.layout) as jobs:
        expected = repeated(jobs, entry.position, asked.run_id, failed=bool(asked.earlier.done))
    alike = attrgetter("earlier", "plan", "options", "dry_run")
    if alike(asked) != alike(expected):
        what = f"this run does not repeat {asked.earlier.run_id[:8]} as the log has it"
        raise BadRun(what, "pmagent rerun makes a good request")


async def _known_mode(host: Host, asked: RunRequested) -> None:
    """Wait until the surfaces have been read since the start: before that nobody knows the mode, and no permit is
    granted. A run that needs none, or is there to mend, goes on without. Raises KernelUnread."""
    with anyio.move_on_after(OBSERVED_SECONDS) as patience:
        await host.ready()
    needs_none = asked.action in CARE or (asked.plan_only and asked.plan is not None)
    if patience.cancelled_caught and not needs_none:
        raise KernelUnread(
            f"the surfaces have not been read in {OBSERVED_SECONDS:g} s, so nobody knows the kernel's mode",
            "pmagent log tail --type kernel.observed shows the last reading; pmagent doctor looks closer",
        )


async def _prepared_audit(host: Host, asked: AuditRequested) -> AuditRequested:
    """The request as it may be recorded. Raises BadAudit, BadRubric, BadPath, ModelUnavailable."""
    from pmagent.audit.request import checked  # with the audit's models, which nobody else needs

    # The auditor's modules take their time to import; nobody who waits for the daemon waits for that.
    await anyio.to_thread.run_sync(import_module, "pmagent.actors.audit.progress")
    asked = await anyio.to_thread.run_sync(checked, asked, host.layout.workspace)
    unfit = not_resumable(host.runtime.engine.states["auditor"], asked)
    if unfit is not None:
        raise BadAudit(*unfit)
    for name in (asked.model, asked.panel, asked.vision_model):
        if name:
            host.resources[Models].check("langchain", name)
    with anyio.move_on_after(OBSERVED_SECONDS):  # a mode that nobody knows forbids an audit nothing: it only looks
        await host.ready()
    return asked


def _check_masked(asked: AuditRequested, drafted: AuditRequested) -> None:
    """Look whether the request is one still, now that its secrets are masked. Raises BadAudit."""
    from pmagent.audit import request

    request.check_masked(asked, drafted)


EDGES: Final = (
    Edge(RUNS, BadRun, _prepared_run, secrets="ask with fewer secrets; tools are not given any that way"),
    Edge(AUDITS, BadAudit, _prepared_audit, _check_masked, carried=carried),
)


async def ask(edge: Edge, host: Host, arguments: dict[str, Any]) -> Answer:
    """Ask for a job: ``{<kind>_id, position, end}``, as soon as the request is durable. ``end`` is the type of the
    event that ended it, where one did at once (a refusal), else null.

    Raises ``edge.bad`` and what ``edge.prepared`` raises (nothing is recorded then); RequestReused, OutcomeUnknown.
    """
    kind = edge.kind
    asked = await edge.prepared(host, _as_request(edge, arguments))
    job_id = getattr(asked, kind.id_field)
    try:
        draft = await anyio.to_thread.run_sync(host.drafted, asked, job_id)
    except msgspec.ValidationError as error:  # a mask may be longer than the secret in whose place it stands
        what = f"with its secrets masked, this is no {kind.word} that can be asked for: {error}"
        raise edge.bad(what, edge.secrets) from error
    edge.masked(asked, draft.data)
    position = await host.tell_draft(draft)
    over = job_id not in open_jobs(host, kind)
    end = await host.answer_in_log(position, draft.correlation, kind.end_types) if over else None
    if end is not None:
        await host.flush()
    return Answer(document={kind.id_field: job_id, "position": position, "end": None if end is None else end.type})


async def ask_audit(host: Host, arguments: dict[str, Any]) -> Answer:
    """``ask`` for an audit; one that is asked for on another machine brings its report along, which is kept if the
    audit is recorded."""
    if asker.get() != FAR:
        return await ask(EDGES[1], host, arguments)
    async with _receiving:  # requests may bring one report
        kept = await anyio.to_thread.run_sync(received, host.layout, arguments)
        try:
            return await ask(EDGES[1], host, kept.arguments)
        except PmagentError:
            if host.runtime.engine.sequencer.seen(str(arguments.get(AUDITS.id_field))) is None:
                await anyio.to_thread.run_sync(dropped, host.layout, kept)
            raise


_receiving: Final = anyio.Lock()


async def cancel(edge: Edge, host: Host, arguments: dict[str, Any]) -> Answer:
    """Take a job back: ``{<kind>_id, accepted, text}``; exit code 1 when it is not open any more. The asker is
    ``operator`` in the arguments, as in every operation that a person is behind."""
    kind = edge.kind
    fields = dict(arguments)
    if "operator" in fields:
        fields["operator_id"] = fields.pop("operator")
    what = f"this is no request to cancel {kind.a}"
    asked: Payload = understood(fields, kind.cancellation, edge.bad, what, f"it needs {kind.id_field}")
    request = arguments.get("request")
    if not isinstance(request, str) or not request.startswith(f"{kind.cancel}-"):
        raise edge.bad("the request id is missing", f"it begins with {kind.cancel}-")
    event = await host.ask_draft(host.drafted(asked, request), {f"{kind.word}.cancel_answered"}, shown=False)
    document = {name: getattr(event.data, name) for name in (kind.id_field, "accepted", "text")}
    return Answer(document=document, exit_code=0 if event.data.accepted else 1)


async def written(host: Host, _: dict[str, Any]) -> Answer:
    """Wait until the documents on disk show all that is durable now. Raises DocumentUnwritable. A halted projection's
    documents never will: that is a warning."""
    await host.flush()
    warnings = [ProjectionHalted(halt).message for halt in host.halted_projections]
    return Answer(document={"position": host.tail.position}, warnings=warnings)


async def end_all(edge: Edge, host: Host, _operator: str) -> None:
    """Take back every job of this kind that is open, for a log that is adopted."""
    kind = edge.kind
    for job_id in open_jobs(host, kind):
        request = {"request": new_request(kind.cancel), "reason": "the log was adopted", kind.id_field: job_id}
        await cancel(edge, host, request)


ask_run = partial(ask, EDGES[0])
cancel_run, cancel_audit = (partial(cancel, edge) for edge in EDGES)
end_runs, end_audits = (partial(end_all, edge) for edge in EDGES)


def open_jobs(host: Host, kind: Kind) -> list[str]:
    """The ids of the jobs of this kind that were taken and have not ended, oldest first."""
    return [job.id for job in kind.open_in(host.runtime.engine.states)]


def _as_request(edge: Edge, arguments: dict[str, Any]) -> Any:
    kind = edge.kind
    what = f"this is no {kind.word} that can be asked for"
    fields = dict(arguments)
    if "operator" in fields:
        fields["operator_id"] = fields.pop("operator")  # a command that asks as nobody in particular gives none
    return understood(fields, kind.request, edge.bad, what, f"pmagent {kind.word} makes a good request")
