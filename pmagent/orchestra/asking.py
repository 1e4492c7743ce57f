"""The operations on runs: asking for one, taking one back, waiting for the documents (docs/design.md §11.2).

A run's id is its request's id, so a request that is sent again, after a lost connection, is the same run.
"""

from __future__ import annotations

from typing import Any, Final

import anyio
import anyio.to_thread
import msgspec

from actors.oa.policy import CARE
from actors.orchestra.bubblewrap import bubblewrap
from actors.orchestra.orchestrator import OrchestratorState
from contracts.orchestra_events import RunCancelRequested, RunRequested
from pmagent.answer import Answer
from pmagent.host import Host
from pmagent.jobs.kinds import RUNS, cancelling
from pmagent.oa.asking import OBSERVED_SECONDS, KernelUnread
from pmagent.orchestra.request import BadRun, checked
from pmagent.trust import require_covers
from projections.projection import ProjectionHalted

RUN: Final = RUNS.ask
CANCEL: Final = RUNS.cancel
WRITTEN: Final = "orchestra.written"


async def run(host: Host, arguments: dict[str, Any]) -> Answer:
    """Ask for a run: ``{run_id, position, end}``, as soon as the request is durable. ``end`` is the type of the event
    that ended it, where one did at once (a refusal), else null.

    Raises BadRun, BadConfig, NotAccepted, KernelUnread, SandboxUnavailable (nothing is recorded then), RequestReused,
    OutcomeUnknown.
    """
    asked = _as_request(arguments)
    asked = await anyio.to_thread.run_sync(checked, asked, host.layout.workspace)
    await anyio.to_thread.run_sync(require_covers, host.layout.workspace, asked.config, "the run")
    if not (asked.plan_only or asked.dry_run):
        await anyio.to_thread.run_sync(bubblewrap)  # without one no task could begin
    await _known_mode(host, asked)
    try:
        draft = await anyio.to_thread.run_sync(host.drafted, asked, asked.run_id)
    except msgspec.ValidationError as error:  # a mask may be longer than the secret in whose place it stands
        what = f"with its secrets masked, this is no run that can be asked for: {error}"
        raise BadRun(what, "ask with fewer secrets; tools are not given any that way") from error
    position = await host.tell_draft(draft)
    over = not is_open(host, asked.run_id)
    end = await host.answer_in_log(position, draft.correlation, RUNS.ends) if over else None
    if end is not None:
        await host.flush()
    document = {"run_id": asked.run_id, "position": position, "end": None if end is None else end.type}
    return Answer(document=document)


async def cancel(host: Host, arguments: dict[str, Any]) -> Answer:
    """Take a run back: ``{run_id, accepted, text}``; exit code 1 when it is not open any more."""
    try:
        asked = msgspec.convert(cancelling(arguments), RunCancelRequested)
    except msgspec.ValidationError as error:
        raise BadRun(f"this is no request to cancel a run: {error}", "it needs run_id") from error
    request = arguments.get("request")
    if not isinstance(request, str) or not request.startswith(f"{CANCEL}-"):
        raise BadRun("the request id is missing", f"it begins with {CANCEL}-")
    event = await host.ask_draft(host.drafted(asked, request), {"run.cancel_answered"}, shown=False)
    answered = event.data
    document = {"run_id": answered.run_id, "accepted": answered.accepted, "text": answered.text}
    return Answer(document=document, exit_code=0 if answered.accepted else 1)


async def written(host: Host, _: dict[str, Any]) -> Answer:
    """Wait until the documents on disk show all that is durable now. Raises DocumentUnwritable. A halted projection's
    documents never will: that is a warning."""
    await host.flush()
    warnings = [ProjectionHalted(halt).message for halt in host.halted_projections]
    return Answer(document={"position": host.tail.position}, warnings=warnings)


def open_runs(host: Host) -> list[str]:
    """The ids of the runs that are open, oldest first."""
    state: OrchestratorState = host.runtime.engine.states["orchestrator"]
    return list(state.runs)


def is_open(host: Host, run_id: str) -> bool:
    """Whether the run was taken and has not ended."""
    return run_id in open_runs(host)


def _as_request(arguments: dict[str, Any]) -> RunRequested:
    fields = {name: value for name, value in arguments.items() if name != "request"}
    try:
        return msgspec.convert(fields, RunRequested)
    except msgspec.ValidationError as error:
        raise BadRun(f"this is no run that can be asked for: {error}", "pmagent run makes a good request") from error


async def _known_mode(host: Host, asked: RunRequested) -> None:
    """Wait until the surfaces have been read since the start: before that nobody knows the mode, and no permit is
    granted. What needs none, or is there to mend, goes on without. Raises KernelUnread."""
    with anyio.move_on_after(OBSERVED_SECONDS) as patience:
        await host.first_observed()
    needs_none = asked.action in CARE or (asked.plan_only and asked.plan is not None)
    if patience.cancelled_caught and not needs_none:
        raise KernelUnread(
            f"the surfaces have not been read in {OBSERVED_SECONDS:g} s, so nobody knows the kernel's mode",
            "pmagent log tail --type kernel.observed shows the last reading; pmagent doctor looks closer",
        )
