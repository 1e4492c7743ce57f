"""``pmagent log adopt``: taking a log that came from elsewhere for this user's own, when all that is open in it has
been ended. Nothing of it goes on: no effect is performed meanwhile (``open_host``, ``adopting``)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import anyio
import msgspec

from pmagent.actors.core.area import load
from pmagent.actors.core.outcomes import fact_of
from pmagent.contracts.control import FOLDER_CHARS_MAX, LogAdopted
from pmagent.contracts.effect import EffectCancelled
from pmagent.edges import EDGES
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.log import now
from pmagent.flat import flat_errors
from pmagent.service.client import new_request
from pmagent.service.folding import folded
from pmagent.service.host import Host, open_host
from pmagent.service.log_files import check_files, shown
from pmagent.service.open_work import open_work
from pmagent.workspace.layout import Layout
from pmagent.workspace.user_registry import EventsGone, KnownLog, LogOlder, Registry, check_chain, distrust, trusted

SURFACE: Final = "log.adopt"
SECONDS: Final = 60.0
"""So long it may take until everything has ended."""


class NotEnded(PmagentError, exit_code=1):
    """Something in the log could not be ended, so it is not adopted."""


class Found(msgspec.Struct, frozen=True):
    """The log as it lies there: its id and end, why it is not trusted ("": it is), what
    is open in it, where it was known before, which events that were known are gone (0: none), and whether it is an
    ``older`` state of itself."""

    log_id: str
    position: int
    why: str
    open: list[str]
    uid: int
    previous: str = ""
    gone_from: int = 0
    gone_to: int = 0
    known_sum: str = ""
    older: bool = False


def look(workspace: Path) -> Found:
    """Describe the log that would be adopted. Only reads. Raises NotFound where there is no log, LogMissing where there
    was one; CorruptLog; LogFilesUnsafe for files that others could change, which no adoption mends."""
    layout = Layout(workspace)
    why = distrust(layout)
    known = Registry().log_of(workspace)
    try:
        uid = layout.store.identity().owner
        check_files(layout, uid)
        with folded(workspace) as (engine, log_id, tail):
            if not log_id:
                raise NotFound("", "")
            found = Found(log_id, tail.position, why.message if why else "", open_work(engine, now()), uid,
                          older=isinstance(why, LogOlder))  # fmt: skip
    except (NotFound, FileNotFoundError):
        trusted(layout)
        raise NotFound(f"there is no log in {shown(layout.store.place)}", "pmagent up begins one") from None
    before = _before(known, found.log_id)
    return found if before is None else _with_losses(found, layout, before)


def adopt(workspace: Path, found: Found, operator: str) -> None:
    """End what is open, record the adoption in the log, and register the log. Blocking.

    Raises LogLocked where a process holds the log; NotEnded; what ``open_host`` raises.
    """
    with flat_errors():
        anyio.run(partial(_adopt, workspace, found, operator))


async def _adopt(workspace: Path, found: Found, operator: str) -> None:
    async with open_host(workspace, SURFACE, adopting=True) as host:
        if host.storage.log_id() != found.log_id:
            raise NotEnded("the log was exchanged meanwhile", "look again: pmagent log adopt")
        place = shown(host.layout.store.place)[:FOLDER_CHARS_MAX]
        adopted = LogAdopted(
            operator_id=operator, channel="cli", uid=found.uid, folder=place,
            previous=found.previous[:FOLDER_CHARS_MAX], gone_from=found.gone_from, gone_to=found.gone_to,
            known_sum=found.known_sum,
        )  # fmt: skip
        for edge in EDGES:
            if edge.ends:
                await load(edge.ends)(host, operator)
        await host.tell_draft(host.drafted(adopted, new_request(SURFACE)))

        with anyio.move_on_after(SECONDS):
            await _end_effects(host)
        if left := open_work(host.runtime.engine, host.runtime.now()):
            raise NotEnded(f"this could not be ended: {', '.join(left[:3])}", "the log stays as it is: read it only")
        for other in [*Registry().known_at(found.log_id)]:
            Registry().forget_log(Path(other.workspace))
        host.keeper.register()


async def _end_effects(host: Host) -> None:
    """End what is open, and what is asked for because of that."""
    effects = host.runtime.engine.effects
    while effects.open:
        for event in list(effects.open.values()):
            if effects.is_open(event.position):
                await host.runtime.append(*fact_of(event, EffectCancelled(request=event.position, reason="adopted")))


def _before(known: KnownLog | None, log_id: str) -> KnownLog | None:
    """The registry's entry of this log, here or elsewhere."""
    if known is not None and known.log_id == log_id:
        return known
    return next(Registry().known_at(log_id), known)


def _with_losses(found: Found, layout: Layout, before: KnownLog) -> Found:
    first = 0
    if before.log_id != found.log_id:
        first = 1  # another log was here
    else:
        try:
            check_chain(layout, before)
        except EventsGone as gone:
            first = gone.position
    return msgspec.structs.replace(
        found, previous=before.folder, gone_from=first, gone_to=before.position if first else 0,
        known_sum=before.sum if first else "",
    )
