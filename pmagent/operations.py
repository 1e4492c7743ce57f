"""What a command asks of a live workspace, by name: the same with a daemon and without (DESIGN §7).

``call`` sends the operation to the daemon that holds the lock, over its socket; without one it opens a host in this
process for as long as the operation takes. Each operation returns a document and the exit code that goes with it.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from actors.audit.state import AuditorState
from actors.engine import Engine
from actors.gate import GateState
from actors.kernel.actor import KernelState
from actors.oa.context import PATH as CONTEXT_PATH
from actors.oa.context import unfit
from actors.oa.state import OaActorState
from actors.orchestra.orchestrator import OrchestratorState
from actors.registry import all_actors
from contracts.kernel import Reason
from contracts.oa import (
    OaBootRefused,
    OaBootRequested,
    OaPermitGranted,
    OaPermitRequested,
    OaSessionBooted,
    OaSnapshotRequested,
)
from contracts.oa_documents import SnapshotAnswer, StateDocument
from contracts.reasoning_events import OaContextRequested
from events.blobs import BlobStore
from events.disk import RealDisk
from events.errors import LogLocked, NotFound, PmagentError
from events.event import Tail
from events.lock import is_locked
from events.log import now
from events.segments import SegmentReader
from events.sequencer import Sequencer
from pmagent import cache, control
from pmagent.admission import admitted
from pmagent.answer import Answer
from pmagent.audit import asking as audit
from pmagent.audit.source import is_address
from pmagent.client import PATIENCE_SECONDS, REPLY_SECONDS, TRY_SECONDS, HolderGone, call_daemon, new_request
from pmagent.flat import flat_errors
from pmagent.folding import fold_into
from pmagent.host import Host, open_host
from pmagent.layout import Layout
from pmagent.log_files import check_files
from pmagent.oa.asking import OBSERVED_SECONDS, answer_seconds, reason
from pmagent.orchestra import asking as orchestra
from pmagent.pausing import refuse_if_paused
from pmagent.pla import asking as pla
from pmagent.registry import distrust, snapshot_digest
from pmagent.trust import require_accepted, require_known, unaccepted_of
from pmagent.workspace.checks import answer_seconds as check_seconds
from pmagent.workspace.checks import run as run_checks
from pmagent.workspace.presence import require_workspace
from projections.answers import boot_answer, boot_refusal, snapshot_answer
from projections.documents import Documents
from projections.oa_state import PATH as STATE_PATH
from projections.rebuild import rewrite_documents
from projections.registry import all_projections


class BadOperation(PmagentError):
    """There is no such operation, or its arguments do not fit."""

    exit_code = 2


Operation = Callable[[Host, dict[str, Any]], Awaitable[Answer]]


async def snapshot(host: Host, arguments: dict[str, Any]) -> Answer:
    """``pmagent oa snapshot``: exactly ``{success, path, state}``; with ``error`` when it is refused (rulings A)."""
    event = await host.ask(OaSnapshotRequested(), _request(arguments, "oa.snapshot"), {"oa.snapshot_taken"})
    part = host.documents.every().get(STATE_PATH)
    rendered = part.content() if part is not None else None
    state = msgspec.json.decode(rendered, type=StateDocument) if isinstance(rendered, bytes) else None
    answer = snapshot_answer(event.data, state)
    if answer.success and host.unwritten is not None:  # asked for again: the answer is known, but the file is not there
        raise host.unwritten
    return Answer(document=_plain(answer), exit_code=0 if answer.success else 1)


async def boot(host: Host, arguments: dict[str, Any]) -> Answer:
    """``pmagent boot oa``: the boot envelope, or the refusal with its reasons and exit code 1 (rulings A)."""
    request = _request(arguments, "boot.oa")
    session = uuid.uuid5(uuid.NAMESPACE_OID, request)  # the same request, sent again, is the same session
    asked = OaBootRequested(session_id=f"oa-session-{session}", workspace=str(host.layout.workspace))
    event = await host.ask(asked, request, {"oa.session_booted", "oa.boot_refused"})
    if isinstance(event.data, OaBootRefused):
        return Answer(document=_plain(boot_refusal(event.data)), exit_code=1)
    booted: OaSessionBooted = event.data
    warnings = [f"the kernel is {booted.mode}: {reason.text}" for reason in booted.reasons]
    return Answer(document=_plain(boot_answer(booted, event.time)), warnings=warnings)


async def permit(host: Host, arguments: dict[str, Any]) -> Answer:
    """Ask the OA for a permit: ``{granted, position, …}``; exit code 1 with reasons when it is refused."""
    try:
        fields = {name: value for name, value in arguments.items() if name != "request"}
        asked = msgspec.convert(fields, OaPermitRequested)
    except msgspec.ValidationError as error:
        raise BadOperation(f"this is no request for a permit: {error}", "it needs action, subject, holder") from error
    if not math.isfinite(asked.seconds):
        raise BadOperation("seconds must be a number", "ask for as many as the work needs")
    event = await host.ask(asked, _request(arguments, "oa.permit"), {"oa.permit_granted", "oa.permit_refused"})
    granted = isinstance(event.data, OaPermitGranted)
    document = {"granted": granted, "position": event.position, **_plain(event.data)}
    return Answer(document=document, exit_code=0 if granted else 1)


async def context(host: Host, arguments: dict[str, Any]) -> Answer:
    """Write CONTEXT.json, if it still is what ``base`` says: ``{success, path, sha256, error, mend, …}``; exit code 1
    when it was not written."""
    try:
        fields = {name: value for name, value in arguments.items() if name != "request"}
        asked = msgspec.convert(fields, OaContextRequested)
    except msgspec.ValidationError as error:
        raise BadOperation(f"this is no request for a context: {error}", "it needs context and base") from error
    lack = unfit(asked.context, asked.base)
    if lack:
        raise BadOperation(f"{CONTEXT_PATH} was not written: {lack}", "pmagent oa context --help describes contexts")
    with anyio.move_on_after(OBSERVED_SECONDS):  # without a mode it would be refused, and we may just have started
        await host.first_observed()
    draft = await anyio.to_thread.run_sync(host.drafted, asked, _request(arguments, "oa.context"))
    event = await host.ask_draft(draft, {"oa.context_answered"})
    document = {"path": CONTEXT_PATH, **_plain(event.data)}
    return Answer(document=document, exit_code=0 if event.data.success else 1)


async def checks(host: Host, arguments: dict[str, Any]) -> Answer:
    """Run configured checks or guards: ``{results, position}``; see ``workspace.checks``. Raises Paused: who asks waits
    for the answer, and would be told nothing until effects are resumed."""
    refuse_if_paused(host)
    return await run_checks(host, arguments, _request(arguments, "kernel.checks"))


async def status(host: Host, _: dict[str, Any]) -> Answer:
    """What stands: mode and reasons, sessions, permits, open effects, halted actors, the log's end."""
    document = _status(host.runtime.engine, host.storage.log_id, host.tail, running=True)
    unaccepted = await anyio.to_thread.run_sync(unaccepted_of, host.layout.workspace)
    return Answer(document={**document, "distrust": _said(host.keeper.failure), "unaccepted": unaccepted})


async def rebuild(host: Host, _: dict[str, Any]) -> Answer:
    """Write every document that is not on disk as the log says."""
    return _rebuilt(await host.writer.rewrite())


def _rebuilt(documents: Iterable[tuple[str, bool]]) -> Answer:
    """Of a path that came twice, what happened to it last is the last."""
    written = dict(documents)
    return Answer(
        document={"documents": sorted(written), "written": [path for path, done in written.items() if done]}
    )


OPERATIONS: Final[dict[str, Operation]] = {
    "oa.snapshot": snapshot,
    "boot.oa": boot,
    "oa.permit": permit,
    "oa.context": context,
    "status": status,
    "rebuild": rebuild,
    "oa.reason": reason,
    "kernel.checks": checks,
    orchestra.RUN: orchestra.run,
    orchestra.CANCEL: orchestra.cancel,
    orchestra.WRITTEN: orchestra.written,
    audit.RUN: audit.run,
    audit.CANCEL: audit.cancel,
    **pla.OPERATIONS,
    **control.OPERATIONS,
}
"""Every operation, by name."""


async def perform(host: Host, name: str, arguments: dict[str, Any]) -> Answer:
    """Perform an operation on a live host. Raises BadOperation for an unknown name, and what the operation raises."""
    operation = OPERATIONS.get(name)
    if operation is None:
        raise BadOperation(f"there is no operation {name!r}", f"there are: {', '.join(sorted(OPERATIONS))}")
    if name in _CONFIGURED and goes_by_configuration(host.layout.workspace, name, arguments):
        await anyio.to_thread.run_sync(require_accepted, host.layout.workspace)
    return await operation(host, arguments)


def goes_by_configuration(workspace: Path, name: str, arguments: dict[str, Any]) -> bool:
    """Whether the operation does something that the workspace's configuration says, so that this user must have
    accepted all of it."""
    if name == audit.RUN:
        return not is_address(str(arguments.get("repo_url")), workspace)
    return name in _CONFIGURED


_CONFIGURED: Final = frozenset((orchestra.RUN, audit.RUN, "kernel.checks", "oa.reason", "pla.propose", "pla.observe"))
_LOWERING: Final = frozenset((
    control.PAUSE, orchestra.CANCEL, audit.CANCEL, orchestra.WRITTEN, "pla.disarm", "pla.end", control.NOTE,
))  # fmt: skip
"""Operations that end or lower something, or only note it: a configuration that was widened keeps nobody from them."""


def call(workspace: Path, name: str, arguments: dict[str, Any] | None = None) -> Answer:
    """Perform an operation on the workspace, through its daemon or in this process; blocking.

    ``status`` and ``rebuild`` without a daemon only read the log, and need no lock. Raises PmagentError.
    """
    workspace = workspace.resolve()
    layout = Layout(workspace)
    if layout.lock.is_symlink():
        check_files(layout, None)
    arguments = {"request": new_request(name), **(arguments or {})}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            if is_locked(layout.lock) and not _only_reads_beside_a_job(layout, name):
                with flat_errors():
                    return anyio.run(call_daemon, layout, name, arguments, _answer_seconds(name, arguments))
            return _without_daemon(workspace, name, arguments)
        except (LogLocked, HolderGone):  # others, commands or daemons, come and go meanwhile
            if time.monotonic() > deadline:
                raise
            time.sleep(TRY_SECONDS)


def _only_reads_beside_a_job(layout: Layout, name: str) -> bool:
    """Whether the log is read as it stands: who holds it carries a job of its own, and takes no requests."""
    from pmagent.jobs.following import held_by_job

    return (name == "status" or name in pla.READING) and held_by_job(layout) is not None


def _answer_seconds(name: str, arguments: dict[str, Any]) -> float:
    """So long a daemon may take to answer. Raises BadReasoning, BadCheckRequest."""
    asked = _SECONDS.get(name)
    return asked(arguments) if asked is not None else REPLY_SECONDS


_SECONDS: Final[dict[str, Callable[[dict[str, Any]], float]]] = {
    "oa.reason": answer_seconds, "kernel.checks": check_seconds, **pla.SECONDS,
}


def _without_daemon(workspace: Path, name: str, arguments: dict[str, Any]) -> Answer:
    if name == "status":
        return Answer(document=offline_status(workspace))
    if name == "rebuild":
        admitted(Layout(workspace))
        return _rebuilt(rewrite_documents(workspace))
    if name in pla.READING:
        with folded(workspace) as (engine, _, _):
            return pla.read(engine, name, arguments)
    try:
        require_workspace(workspace)
    except NotFound as absent:
        return _no_workspace(absent, name)
    with flat_errors():
        return anyio.run(partial(_in_process, workspace, name, arguments))


def _no_workspace(absent: NotFound, name: str) -> Answer:
    """What an operation answers where there is no workspace: the contract's refusal, or ``absent``."""
    if name == "oa.snapshot":
        error = f"{absent.message} (mend: {absent.hint})"
        refused = SnapshotAnswer(success=False, path=STATE_PATH, state=None, error=error)
        return Answer(document=_plain(refused), exit_code=1)
    raise absent


async def _in_process(workspace: Path, name: str, arguments: dict[str, Any]) -> Answer:
    lowering = name in _LOWERING
    if lowering:
        require_known(workspace)
    configured = not lowering and (name != audit.RUN or goes_by_configuration(workspace, name, arguments))
    async with open_host(workspace, name, configured=configured) as host:
        if name == "oa.reason":
            refuse_if_paused(host)
        return await perform(host, name, arguments)


def offline_status(workspace: Path) -> dict[str, Any]:
    """The status as the log has it, without a daemon; nothing is written. Raises CorruptLog, HistoryError."""
    with folded(workspace) as (engine, log_id, tail):
        status = _status(engine, log_id, tail, running=False)
    status["distrust"] = _said(distrust(Layout(workspace)))
    status["unaccepted"] = unaccepted_of(workspace)
    return status if log_id else {**status, "workspace": str(workspace)}


def _said(error: Exception | None) -> str | None:
    """Why the log is not trusted, or its registry's entry cannot be kept; None where nothing is wrong."""
    return None if error is None else str(error)


@contextmanager
def folded(workspace: Path) -> Iterator[tuple[Engine, str, Tail]]:
    """The actors as the log has them, its id and its end; without a log as they begin, and "". Nothing is written.
    Raises CorruptLog, HistoryError."""
    layout = Layout(workspace)
    disk = RealDisk()
    engine, documents = Engine(all_actors(), Sequencer(Tail())), Documents(all_projections())
    try:
        storage = SegmentReader(disk, str(layout.log))
    except NotFound:
        yield engine, "", Tail()
        return
    try:
        start = cache.load(layout.snapshot, snapshot_digest(layout), storage.log_id(), storage, engine, documents)
        fold_into(storage, engine, documents, BlobStore(disk, str(layout.blobs)), start)
        yield engine, storage.log_id(), storage.tail()
    finally:
        storage.close()


def _status(engine: Engine, log_id: str, tail: Tail, *, running: bool) -> dict[str, Any]:
    kernel: KernelState = engine.states["kernel"]
    oa: OaActorState = engine.states["oa"]
    gate: GateState = engine.states["gate"]
    unwatched = [_UNWATCHED] if "kernel" in engine.halted else []
    return {
        "running": running,
        "mode": "BLOCKED" if unwatched else kernel.mode or None,
        "phase": kernel.phase or None,
        "branch": kernel.branch or None,
        "reasons": [_plain(reason) for reason in [*unwatched, *kernel.reasons]],
        "sessions": [_plain(session) for session in oa.sessions],
        "permits": sum(permit.uses_left > 0 and now() < permit.expires_at for permit in gate.permits.values()),
        "paused": _plain(gate.pause) if gate.pause is not None else None,
        "held": len(engine.effects.held),
        "open_effects": [
            {
                "position": event.position, "type": event.type, "since": event.time,
                "held": event.position in engine.effects.held,
            }
            for event in engine.effects.open.values()
        ],
        "jobs": [*_open_runs(engine.states["orchestrator"]), *_open_audits(engine.states["auditor"])],
        "halted": sorted(engine.halted),
        "log": {"log_id": log_id, "position": tail.position, "sum": tail.sum, "time": tail.time or None},
    }


_WHAT_CHARS: Final = 200
"""So much of what a job is for stands in the status."""


def _open_runs(state: OrchestratorState) -> Iterator[dict[str, Any]]:
    for run in state.runs.values():
        what = run.request.intent[:_WHAT_CHARS]
        yield {"kind": "run", "id": run.run_id, "position": run.requested, "doing": run.doing, "what": what}


def _open_audits(state: AuditorState) -> Iterator[dict[str, Any]]:
    for one in state.audits.values():
        doing, what = "judging" if one.collected else "evidence", one.asked.repo_url[:_WHAT_CHARS]
        yield {"kind": "audit", "id": one.audit_id, "position": one.requested, "doing": doing, "what": what}


_UNWATCHED: Final = Reason(
    code="watcher_halted", mode="BLOCKED", text="the kernel watcher is halted, so nobody knows the mode",
    mend="start again with a version that does not fail; pmagent log tail --type actor.halted shows where",
)


def _request(arguments: dict[str, Any], kind: str) -> str:
    request = arguments.get("request") or new_request(kind)
    if not isinstance(request, str) or not 0 < len(request) <= 200:
        raise BadOperation("the request id must be a short text")
    if ":" in request or request.endswith(".outcome"):  # an effect whose outcome's id is taken would never end
        raise BadOperation("the request id looks like a fact's own id", "use no colon, and not the end .outcome")
    return request


def _plain(document: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(document)
    return plain
