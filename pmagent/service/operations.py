"""The operations of a live workspace, by name: the same with a daemon and without (docs/design.md §11.2).

``call`` sends the operation to the daemon that holds the lock, over its socket; without one it opens a host in this
process for as long as the operation takes. Each operation returns a document and the exit code that goes with it.

The engine is imported where it is used: a command that only asks a daemon needs none of it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import msgspec

from pmagent.actors.core.area import load
from pmagent.edge import Operation
from pmagent.edges import AREA_OF, OPERATIONS
from pmagent.events.errors import LogLocked, NotFound, PmagentError
from pmagent.events.store import Holder
from pmagent.exitcodes import Exit
from pmagent.flat import flat_errors
from pmagent.service.answer import Answer, BadOperation, OutcomeOpen
from pmagent.service.client import (
    PATIENCE_SECONDS,
    REPLY_SECONDS,
    TRY_SECONDS,
    DaemonStarting,
    HolderGone,
    Say,
    Unanswered,
    asked_here_first,
    call_daemon,
    new_request,
    require_possible,
    unheard,
)
from pmagent.service.log_files import check_files
from pmagent.service.wire import LOOKING
from pmagent.workspace.layout import Layout

if TYPE_CHECKING:
    from pmagent.projections.core.projection import Halt
    from pmagent.service.host import Host


class NotInstalled(PmagentError, exit_code=2):
    """The operation's area lacks libraries that take part in its decisions; nothing was recorded."""


async def status(host: Host, _: dict[str, Any]) -> Answer:
    """The current status: mode and reasons, sessions, permits, open effects, halted actors, the log's end."""
    from pmagent.workspace.trust import marks_of, unaccepted_of

    workspace = host.layout.workspace
    marks = marks_of(workspace)
    if _accepted.get(workspace, _UNKNOWN_YET)[0] != marks:
        _accepted[workspace] = marks, await anyio.to_thread.run_sync(unaccepted_of, workspace)
    return _status(host, _accepted[workspace][1])


def status_now(host: Host) -> Answer | None:
    """``status``; None where files must be read for it, because they have changed."""
    from pmagent.workspace.trust import marks_of

    marks, unaccepted = _accepted.get(host.layout.workspace, _UNKNOWN_YET)
    return _status(host, unaccepted) if marks == marks_of(host.layout.workspace) else None


def _status(host: Host, unaccepted: str | None) -> Answer:
    document = host.standing.of(host.runtime.engine, host.storage.log_id(), host.tail, host.halted_projections)
    seen = {"distrust": _message(host.keeper.failure), "unaccepted": unaccepted, "unwritten": _unwritten(host)}
    return Answer(document={**document, **seen})


_UNKNOWN_YET: Final[tuple[tuple[object, ...], str | None]] = ((), None)
_accepted: Final[dict[Path, tuple[tuple[object, ...], str | None]]] = {}
"""Of each workspace, how the files stood when they were read, and ``unaccepted_of``."""

_UNWRITTEN_SHOWN: Final = 20


def _unwritten(host: Host) -> dict[str, Any]:
    """How many documents are not on disk as the log says, and why the first are not."""
    lost = {path: error.message for path, error in host.lost.items()}
    first = [{"path": path, "text": text} for path, text in list(lost.items())[:_UNWRITTEN_SHOWN]]
    if host.unwritten is not None:
        first.append({"path": "", "text": host.unwritten.message})
    return {"count": len(lost) + (host.unwritten is not None), "first": first}


async def figures(host: Host, _: dict[str, Any]) -> Answer:
    """How much was done, hour by hour, oldest first (``projections.figures.Hour``). Raises ProjectionHalted."""
    host.require_current("figures")
    return Answer(document={"hours": msgspec.to_builtins(host.documents.state("figures").hours)})


async def ping(host: Host, _: dict[str, Any]) -> Answer:
    """Nothing: that it is answered is the answer."""
    return pong(host)


def pong(_: Host) -> Answer:
    """The answer to ``ping``."""
    return Answer(document={})


async def settings(host: Host, arguments: dict[str, Any]) -> Answer:
    """The settings that hold: key, value, and where it came from. No secret is a setting; of an address, whose path may
    be a password, only its beginning is told. Raises ConfigError, NotAccepted."""
    return await anyio.to_thread.run_sync(settings_alone, host.layout.workspace, "settings", arguments)


def settings_alone(workspace: Path, _name: str, _arguments: dict[str, Any]) -> Answer:
    """``settings``, on this machine. Blocking."""
    import os

    from pmagent.workspace.trust import resolved

    found = resolved(workspace, os.environ)
    told = [
        {"key": key, "value": _beginning(value) if key in _ADDRESSES else value, "origin": origin}
        for key, (value, origin) in found.origins.items()
    ]
    return Answer(document={"settings": told})


_ADDRESSES: Final = ("notifications.webhook", "notifications.ntfy")


def _beginning(address: Any) -> str:
    scheme, there, rest = str(address).partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}/…" if there else ""


async def rebuild(host: Host, _: dict[str, Any]) -> Answer:
    """Write every document that is not on disk as the log says."""
    return _rebuilt(*await host.writer.rewrite())


def _rebuilt(documents: Iterable[tuple[str, bool]], halts: Collection[Halt]) -> Answer:
    """Of a path that came twice, what happened to it last is the last. A halted projection is a bug of ours, and the
    others are written all the same."""
    from pmagent.projections.core.projection import ProjectionHalted

    written = dict(documents)
    document = {
        "documents": sorted(written), "written": [path for path, done in written.items() if done],
        "stale": msgspec.to_builtins(list(halts)),
    }  # fmt: skip
    warnings = [ProjectionHalted(halt).message for halt in halts]
    return Answer(document=document, exit_code=Exit.BUG if halts else Exit.DONE, warnings=warnings)


async def perform(host: Host, name: str, arguments: dict[str, Any]) -> Answer:
    """Perform an operation on a live host. Raises BadOperation for an unknown name, and what the operation raises."""
    operation = _operation(name)
    if not operation.lowers and AREA_OF.get(name):
        _require_installed(name)
    if operation.configured and goes_by_configuration(host.layout.workspace, name, arguments):
        from pmagent.workspace.trust import require_accepted

        await anyio.to_thread.run_sync(require_accepted, host.layout.workspace)
    act = operation.perform if callable(operation.perform) else load(operation.perform)
    answer: Answer = await act(host, arguments)
    return answer


def _require_installed(name: str) -> None:
    from pmagent.actors.areas import AREAS
    from pmagent.actors.core.extras import EXTRAS, install, install_command

    for area in AREAS:
        if area.name == AREA_OF.get(name) and area.lacks:
            what = f"area {area.name} is not installed: it lacks {', '.join(area.lacks)}"
            raise NotInstalled(what, install(area.name) if area.name in EXTRAS else install_command(area.lacks))


def _operation(name: str) -> Operation:
    operation = OPERATIONS.get(name)
    if operation is None:
        raise BadOperation(f"there is no operation {name!r}", f"there are: {', '.join(sorted(OPERATIONS))}")
    return operation


def goes_by_configuration(workspace: Path, name: str, arguments: dict[str, Any]) -> bool:
    """Whether the operation does something that the workspace's configuration says, so that this user must have
    accepted all of it."""
    configured = _operation(name).configured
    return bool(load(configured)(workspace, arguments)) if isinstance(configured, str) else configured


def call(workspace: Path, name: str, arguments: dict[str, Any] | None = None, say: Say = unheard) -> Answer:
    """Perform an operation on the workspace, through its daemon or in this process; blocking. ``say`` is told what
    keeps it waiting.

    ``status`` and ``rebuild`` without a daemon only read the log, and need no lock. An operation that only looks is
    answered by the log also where a daemon does not answer, and ``say`` is told at once, else a warning says so. Raises
    PmagentError.
    """
    workspace = workspace.resolve()
    layout = Layout(workspace)
    if any(path.is_symlink() for path in layout.store.files().lease):
        check_files(layout, None)
    arguments = {"request": new_request(name), **(arguments or {})}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            here = asked_here_first(layout, name, arguments)
            holder = Holder(live=True) if here else layout.store.holder()
            if holder.live and holder.elsewhere and name in OPERATIONS and OPERATIONS[name].here:
                return _looked(workspace, holder.note, name, arguments)
            if holder.live and not _only_reads_during_job(layout, name):
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
            return _as_logged(workspace, name, arguments, error, say)


def _looked(workspace: Path, holder: str, name: str, arguments: dict[str, Any]) -> Answer:
    """The answer of this machine while another one holds the log. Raises NotFromHere, and what the operation raises."""
    require_possible(holder, name, arguments)
    answer = _without_daemon(workspace, name, arguments)
    return msgspec.structs.replace(answer, document={**answer.document, "daemon": "elsewhere"})


def _as_logged(
    workspace: Path, name: str, arguments: dict[str, Any], error: DaemonStarting | Unanswered, say: Say
) -> Answer:
    """The log's answer beside a daemon that gives none. Raises ``error`` where the log does not know it yet."""
    what = f"{error.message}; this is what the log says"
    say(what)  # a long log takes a while
    try:
        answer = _without_daemon(workspace, name, arguments)
    except OutcomeOpen:
        raise error from None
    warnings = [what, *answer.warnings] if say is unheard else answer.warnings
    return Answer(
        document={**answer.document, "daemon": error.daemon}, exit_code=answer.exit_code, warnings=warnings
    )


def _only_reads_during_job(layout: Layout, name: str) -> bool:
    """Whether the log is read as it stands: who holds it carries a job of its own, and takes no requests."""
    if name not in LOOKING or layout.store.holder().role == "daemon":
        return False
    from pmagent.jobs.registry import held_by_job

    return held_by_job(layout) is not None


def _answer_seconds(name: str, arguments: dict[str, Any]) -> float:
    """So long a daemon may take to answer. Raises BadReasoning, BadCheckRequest."""
    seconds = OPERATIONS[name].seconds if name in OPERATIONS else ""
    return float(load(seconds)(arguments)) if seconds else REPLY_SECONDS


def _without_daemon(workspace: Path, name: str, arguments: dict[str, Any]) -> Answer:
    operation = OPERATIONS.get(name, _UNKNOWN)
    from pmagent.workspace.presence import require_workspace

    answer: Answer
    if operation.alone:
        answer = load(operation.alone)(workspace, name, arguments)
        return answer
    try:
        require_workspace(workspace)
    except NotFound as error:
        if not operation.absent:
            raise
        answer = load(operation.absent)(error)
        return answer
    with flat_errors():
        return anyio.run(partial(_in_process, workspace, name, operation, arguments))


_UNKNOWN: Final = Operation(perform="")
"""``perform`` refuses it, once there is a workspace."""


async def _in_process(workspace: Path, name: str, operation: Operation, arguments: dict[str, Any]) -> Answer:
    from pmagent.service.host import open_host
    from pmagent.service.pausing import refuse_if_paused
    from pmagent.workspace.trust import require_known

    if operation.lowers:
        require_known(workspace)
    by_arguments = isinstance(operation.configured, str) and not goes_by_configuration(workspace, name, arguments)
    configured = not operation.lowers and not by_arguments
    async with open_host(workspace, name, configured=configured, must_write=not operation.unwritten) as host:
        if operation.unpaused:
            refuse_if_paused(host)
        answer = await perform(host, name, arguments)
    if operation.unwritten and host.unwritten is not None:
        answer = msgspec.structs.replace(answer, warnings=[*answer.warnings, host.unwritten.message])
    return answer


def status_alone(workspace: Path, _name: str, _arguments: dict[str, Any]) -> Answer:
    """``offline_status``; a log that should be here and is not is a warning."""
    from pmagent.workspace.presence import log_gone

    gone = log_gone(Layout(workspace))
    return Answer(document=offline_status(workspace), warnings=[f"{gone.message}: {gone.hint}"] if gone else [])


def rebuild_alone(workspace: Path, _name: str, _arguments: dict[str, Any]) -> Answer:
    """``rebuild`` without a daemon; it reads the log, and needs no lock."""
    from pmagent.projections.core.documents import Documents
    from pmagent.projections.rebuild import rewrite_documents
    from pmagent.projections.registry import all_projections
    from pmagent.service.admission import admitted

    admitted(Layout(workspace))
    documents = Documents(all_projections())
    written = list(rewrite_documents(workspace, documents))
    return _rebuilt(written, documents.halted.values())


def offline_status(workspace: Path) -> dict[str, Any]:
    """The status as the log has it, without a daemon; nothing is written. Raises CorruptLog, HistoryError."""
    from pmagent.projections.core.disk import noted_halts
    from pmagent.service.folding import folded
    from pmagent.service.status import status_of
    from pmagent.workspace.trust import unaccepted_of
    from pmagent.workspace.user_registry import distrust

    with folded(workspace) as (engine, log_id, tail):
        status = status_of(engine, log_id, tail, noted_halts(workspace), running=False)
    status["distrust"] = _message(distrust(Layout(workspace)))
    status["unaccepted"] = unaccepted_of(workspace)
    return status if log_id else {**status, "workspace": str(workspace)}


def _message(error: Exception | None) -> str | None:
    """Why the log is not trusted, or its registry's entry cannot be kept; None where nothing is wrong."""
    return None if error is None else str(error)


def call_logged(workspace: Path, name: str) -> dict[str, Any]:
    """The log's answer to an operation that only looks, whatever the daemon does. Raises CorruptLog,
    HistoryError."""
    return _without_daemon(workspace.resolve(), name, {}).document
