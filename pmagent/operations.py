"""What a command asks of a live workspace, by name: the same with a daemon and without (docs/design.md §11.2).

``call`` sends the operation to the daemon that holds the lock, over its socket; without one it opens a host in this
process for as long as the operation takes. Each operation returns a document and the exit code that goes with it.
"""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from actors.engine import Engine
from actors.oa.context import PATH as CONTEXT_PATH
from actors.oa.context import unfit
from actors.registry import all_actors
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
from events.errors import LogLocked, NotFound, PmagentError
from events.event import Tail
from events.sequencer import Sequencer
from pmagent import cache, control
from pmagent.admission import admitted
from pmagent.answer import Answer
from pmagent.audit.source import is_address
from pmagent.client import (
    PATIENCE_SECONDS,
    REPLY_SECONDS,
    TRY_SECONDS,
    DaemonStarting,
    HolderGone,
    Say,
    Unanswered,
    call_daemon,
    new_request,
)
from pmagent.exitcodes import Exit
from pmagent.flat import flat_errors
from pmagent.folding import fold_into
from pmagent.host import Host, open_host
from pmagent.jobs import asking as jobs
from pmagent.jobs.kinds import AUDITS, KINDS, RUNS
from pmagent.layout import Layout
from pmagent.log_files import check_files
from pmagent.oa.asking import OBSERVED_SECONDS, answer_seconds, reason
from pmagent.pausing import refuse_if_paused
from pmagent.pla import asking as pla
from pmagent.registry import distrust, snapshot_digest
from pmagent.status import status_of
from pmagent.trust import require_accepted, require_known, unaccepted_of
from pmagent.wire import LOOKING
from pmagent.workspace.checks import answer_seconds as check_seconds
from pmagent.workspace.checks import run as run_checks
from pmagent.workspace.presence import log_gone, require_workspace
from projections.answers import boot_answer, boot_refusal, snapshot_answer
from projections.disk import noted_halts
from projections.documents import Documents
from projections.oa_state import PATH as STATE_PATH
from projections.oa_state import OaState
from projections.projection import Halt, ProjectionHalted
from projections.rebuild import rewrite_documents
from projections.registry import all_projections


class BadOperation(PmagentError):
    """There is no such operation, or its arguments do not fit."""

    exit_code = 2


Operation = Callable[[Host, dict[str, Any]], Awaitable[Answer]]


async def snapshot(host: Host, arguments: dict[str, Any]) -> Answer:
    """``pmagent oa snapshot``: exactly ``{success, path, state}``; with ``error`` when it is refused
    (docs/design.md §12.3)."""
    event = await host.ask(OaSnapshotRequested(), _request(arguments, "oa.snapshot"), {"oa.snapshot_taken"})
    part = host.documents.every().get(STATE_PATH)
    rendered = part.guarded(part.content, None) if part is not None else None
    try:
        host.require_current(OaState.name)
    except ProjectionHalted as error:
        return _no_snapshot(error)
    state = msgspec.json.decode(rendered, type=StateDocument) if isinstance(rendered, bytes) else None
    answer = snapshot_answer(event.data, state)
    if answer.success and host.unwritten is not None:  # asked for again: the answer is known, but the file is not there
        raise host.unwritten
    return Answer(document=_plain(answer), exit_code=0 if answer.success else 1)


async def boot(host: Host, arguments: dict[str, Any]) -> Answer:
    """``pmagent boot oa``: the boot envelope, or the refusal with its reasons and exit code 1
    (docs/design.md §12.4)."""
    request = _request(arguments, "boot.oa")
    session = uuid.uuid5(uuid.NAMESPACE_OID, request)  # the same request, sent again, is the same session
    asked = OaBootRequested(session_id=f"oa-session-{session}", workspace=str(host.layout.workspace))
    host.require_current(OaState.name)  # a session begins with STATE.json
    event = await host.ask(asked, request, {"oa.session_booted", "oa.boot_refused"})
    host.require_current(OaState.name)
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
    halts = host.halted_projections
    document = status_of(host.runtime.engine, host.storage.log_id(), host.tail, halts, running=True)
    unaccepted = await anyio.to_thread.run_sync(unaccepted_of, host.layout.workspace)
    seen = {"distrust": _said(host.keeper.failure), "unaccepted": unaccepted, "unwritten": _unwritten(host)}
    return Answer(document={**document, **seen})


_UNWRITTEN_SHOWN: Final = 20


def _unwritten(host: Host) -> dict[str, Any]:
    """How many documents are not on disk as the log says, and why the first are not."""
    lost = {path: error.message for path, error in host.lost.items()}
    first = [{"path": path, "text": text} for path, text in list(lost.items())[:_UNWRITTEN_SHOWN]]
    if host.unwritten is not None:
        first.append({"path": "", "text": host.unwritten.message})
    return {"count": len(lost) + (host.unwritten is not None), "first": first}


async def rebuild(host: Host, _: dict[str, Any]) -> Answer:
    """Write every document that is not on disk as the log says."""
    return _rebuilt(*await host.writer.rewrite())


def _rebuilt(documents: Iterable[tuple[str, bool]], halts: Collection[Halt]) -> Answer:
    """Of a path that came twice, what happened to it last is the last. A halted projection is a bug of ours, and the
    others are written all the same."""
    written = dict(documents)
    document = {
        "documents": sorted(written), "written": [path for path, done in written.items() if done],
        "stale": [_plain(halt) for halt in halts],
    }  # fmt: skip
    warnings = [ProjectionHalted(halt).message for halt in halts]
    return Answer(document=document, exit_code=Exit.BUG if halts else Exit.DONE, warnings=warnings)


OPERATIONS: Final[dict[str, Operation]] = {
    "oa.snapshot": snapshot,
    "boot.oa": boot,
    "oa.permit": permit,
    "oa.context": context,
    "status": status,
    "rebuild": rebuild,
    "oa.reason": reason,
    "kernel.checks": checks,
    **jobs.OPERATIONS,
    **pla.OPERATIONS,
    **control.OPERATIONS,
}
"""Every operation, by name."""


STOP_SWITCH: Final = frozenset((
    control.PAUSE, control.RESUME, *(kind.cancel for kind in KINDS), pla.DISARM, pla.MODE, pla.END,
))  # fmt: skip
"""The operations that end or hold what goes on. They depend on no document."""


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
    if name == AUDITS.ask:
        return not is_address(str(arguments.get("repo_url")), workspace)
    return name in _CONFIGURED


_CONFIGURED: Final = frozenset((RUNS.ask, AUDITS.ask, "kernel.checks", "oa.reason", "pla.propose", "pla.observe"))
_LOWERING: Final = frozenset((
    control.PAUSE, *(kind.cancel for kind in KINDS), jobs.WRITTEN, "pla.disarm", "pla.end", control.NOTE,
))  # fmt: skip
"""Operations that end or lower something, or only note it: a configuration that was widened keeps nobody from them."""


def call(
    workspace: Path, name: str, arguments: dict[str, Any] | None = None, say: Say = lambda _: None
) -> Answer:
    """Perform an operation on the workspace, through its daemon or in this process; blocking. ``say`` is told what
    keeps it waiting.

    ``status`` and ``rebuild`` without a daemon only read the log, and need no lock. An operation that only looks is
    answered by the log also where a daemon does not answer, with a warning that says so. Raises PmagentError.
    """
    workspace = workspace.resolve()
    layout = Layout(workspace)
    if any(path.is_symlink() for path in layout.store.files().lease):
        check_files(layout, None)
    arguments = {"request": new_request(name), **(arguments or {})}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            if layout.store.holder().live and not _only_reads_beside_a_job(layout, name):
                with flat_errors():
                    seconds = _answer_seconds(name, arguments)
                    return anyio.run(call_daemon, layout, name, arguments, seconds, say)
            return _without_daemon(workspace, name, arguments)
        except (LogLocked, HolderGone):  # others, commands or daemons, come and go meanwhile
            if time.monotonic() > deadline:
                raise
            time.sleep(TRY_SECONDS)
        except (DaemonStarting, Unanswered) as error:
            if name not in LOOKING:
                raise
            return _as_logged(workspace, name, arguments, error)


def _as_logged(workspace: Path, name: str, arguments: dict[str, Any], error: DaemonStarting | Unanswered) -> Answer:
    """The log's answer beside a daemon that gives none. Raises ``error`` where the log does not know it yet."""
    try:
        answer = _without_daemon(workspace, name, arguments)
    except pla.OutcomeOpen:
        raise error from None
    return Answer(
        document={**answer.document, "daemon": error.daemon}, exit_code=answer.exit_code,
        warnings=[f"{error.message}; this is what the log says", *answer.warnings],
    )


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
        gone = log_gone(Layout(workspace))
        return Answer(document=offline_status(workspace), warnings=[f"{gone.message}: {gone.hint}"] if gone else [])
    if name == "rebuild":
        admitted(Layout(workspace))
        documents = Documents(all_projections())
        written = list(rewrite_documents(workspace, documents))
        return _rebuilt(written, documents.halted.values())
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
        return _no_snapshot(absent)
    raise absent


def _no_snapshot(error: PmagentError) -> Answer:
    """The refusal of a snapshot, of the contract's shape."""
    said = f"{error.message} (mend: {error.hint})"
    refused = SnapshotAnswer(success=False, path=STATE_PATH, state=None, error=said)
    return Answer(document=_plain(refused), exit_code=error.exit_code)


async def _in_process(workspace: Path, name: str, arguments: dict[str, Any]) -> Answer:
    lowering, stops = name in _LOWERING, name in STOP_SWITCH
    if lowering:
        require_known(workspace)
    configured = not lowering and (name != AUDITS.ask or goes_by_configuration(workspace, name, arguments))
    async with open_host(workspace, name, configured=configured, must_write=not stops) as host:
        if name == "oa.reason":
            refuse_if_paused(host)
        answer = await perform(host, name, arguments)
    if stops and host.unwritten is not None:
        answer = msgspec.structs.replace(answer, warnings=[*answer.warnings, host.unwritten.message])
    return answer


def offline_status(workspace: Path) -> dict[str, Any]:
    """The status as the log has it, without a daemon; nothing is written. Raises CorruptLog, HistoryError."""
    with folded(workspace) as (engine, log_id, tail):
        status = status_of(engine, log_id, tail, noted_halts(workspace), running=False)
    status["distrust"] = _said(distrust(Layout(workspace)))
    status["unaccepted"] = unaccepted_of(workspace)
    return status if log_id else {**status, "workspace": str(workspace)}


def _said(error: Exception | None) -> str | None:
    """Why the log is not trusted, or its registry's entry cannot be kept; None where nothing is wrong."""
    return None if error is None else str(error)


def call_logged(workspace: Path, name: str) -> dict[str, Any]:
    """The log's answer to an operation that only looks, whatever the daemon does. Raises CorruptLog,
    HistoryError."""
    return _without_daemon(workspace.resolve(), name, {}).document


@contextmanager
def folded(workspace: Path) -> Iterator[tuple[Engine, str, Tail]]:
    """The actors as the log has them, its id and its end; without a log as they begin, and "". Nothing is written.
    Raises CorruptLog, HistoryError."""
    layout = Layout(workspace)
    store = layout.store
    engine, documents = Engine(all_actors(), Sequencer(Tail())), Documents(all_projections())
    try:
        storage = store.reader()
    except NotFound:
        yield engine, "", Tail()
        return
    with closing(storage):
        start = cache.load(layout.snapshot, snapshot_digest(layout), storage.log_id(), storage, engine, documents)
        fold_into(storage, engine, documents, store.blobs(), start)
        yield engine, storage.log_id(), storage.tail()


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
