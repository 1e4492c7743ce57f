"""The composition root: a workspace's log, actors, performers and documents, live in this process (docs/design.md §10).

    async with open_host(workspace, "daemon") as host:
        event = await host.ask(OaSnapshotRequested(), request_id, {"oa.snapshot_taken"})

The daemon serves a host over its socket; a command without a daemon opens one for its own length.
"""

from __future__ import annotations

import os
import platform
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing, nullcontext
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import msgspec

from pmagent import __version__
from pmagent.actors.core.actor import Io, Performer, Performers, Resources
from pmagent.actors.core.area import load
from pmagent.actors.core.engine import Output
from pmagent.actors.core.intake import Intake
from pmagent.actors.core.ledger import Unfinished
from pmagent.actors.core.performing import Elsewhere
from pmagent.actors.core.runtime import Runtime
from pmagent.actors.registry import all_actors, libraries
from pmagent.actors.sandbox.orphans import sweep
from pmagent.contracts.control import PruneEnded
from pmagent.contracts.daemon import DaemonStarted, DaemonStopped
from pmagent.contracts.effect import EffectCancelled, RequestRefused
from pmagent.contracts.payload import is_repeatable, typed
from pmagent.edge import Edge
from pmagent.edges import EDGES
from pmagent.events.errors import CorruptLog, PmagentError
from pmagent.events.event import Draft, Event, Tail
from pmagent.events.log import opening_events
from pmagent.events.reader import event_at
from pmagent.events.redact import Redactor
from pmagent.events.storage import Blobs, Storage
from pmagent.events.store import LogStore
from pmagent.projections.core.disk import ContentLost, DocumentUnwritable
from pmagent.projections.core.documents import Documents
from pmagent.projections.core.projection import Halt, ProjectionHalted
from pmagent.projections.registry import all_projections
from pmagent.service.admission import admitted, keep_registry
from pmagent.service.cache import SnapshotTaker, code_digest
from pmagent.service.folding import Folded
from pmagent.service.io import RealIo, read_event
from pmagent.service.lease import FencedLease, fenced
from pmagent.service.log_files import check_files
from pmagent.service.noted import code_stamp
from pmagent.service.pruning import finish_all
from pmagent.service.requests import OPERATOR, Requests
from pmagent.service.secrets import known_secrets
from pmagent.service.status import Standing, note_of
from pmagent.service.writing import DocumentWriter
from pmagent.workspace.kernel_settings import expected
from pmagent.workspace.layout import Layout
from pmagent.workspace.presence import require_log, require_text
from pmagent.workspace.trust import require_accepted
from pmagent.workspace.user_registry import Keeper, check_before

if TYPE_CHECKING:  # a daemon alone stands by
    from pmagent.service.standby import Taken


def load_parts() -> None:
    """Import all that a host and its operations will use: a process that lives long does so at its start."""
    all_actors()
    all_projections()
    for edge in EDGES:
        for reference in edge.hosted:
            load(reference)


def resources_of(edges: Iterable[Edge], environment: Mapping[str, str]) -> Iterable[object]:
    """The objects that all areas keep for a host."""
    return [one for edge in edges if edge.resources for one in load(edge.resources)(environment)]


def performers_of(edges: Iterable[Edge], resources: Resources) -> Performers:
    """The performers of all areas, with these resources."""
    made: dict[type[msgspec.Struct], Performer] = {}
    for part in (load(reference) for edge in edges for reference in edge.performers):
        made |= part(resources) if callable(part) else part
    return made


asker: ContextVar[int] = ContextVar("asker", default=0)
"""The process whose request over the socket is performed; 0: none came over it; ``FAR``: another machine's did."""


class Refused(PmagentError):
    """The request was refused because the actor that would answer it is halted."""


class RequestReused(PmagentError, exit_code=2):
    """The request's id belongs to another request."""


class Host:
    """A live workspace. Made by ``open_host``."""

    def __init__(
        self, layout: Layout, runtime: Runtime, documents: Documents, storage: Storage, blobs: Blobs,
        resources: Resources, keeper: Keeper, store: LogStore,
    ) -> None:
        self._blobs = blobs
        self.store = store  # of the log that this process holds
        self.keeper = keeper
        """Of the registry's entry of this log."""
        self.layout = layout
        self.runtime = runtime
        self._requests = Requests(layout.store)
        self.writer = DocumentWriter(layout.workspace, documents, blobs)
        self.storage = storage
        self.resources = resources
        """Those that the areas keep, by their classes."""
        self.standing = Standing()
        self.console_pid = 0
        """The console's process, as its supervisor started it; 0: none is served."""
        self._heard = storage.tail().position
        self._news: anyio.Event | None = None
        self._asking: dict[str, Draft] = {}

    @property
    def documents(self) -> Documents:
        """The documents as of what has been heard."""
        return self.writer.documents

    @property
    def unwritten(self) -> DocumentUnwritable | None:
        """Why not every document could be written at the start; None again when all could be written since."""
        return self.writer.unwritten

    @property
    def halted_projections(self) -> list[Halt]:
        """The projections whose documents are stale, by name."""
        return sorted(self.documents.halted.values(), key=lambda halt: halt.projection)

    def require_current(self, projection: str) -> None:
        """Check that a projection's documents may be read as what stands. Raises ProjectionHalted."""
        if (halt := self.documents.halted.get(projection)) is not None:
            raise ProjectionHalted(halt)

    @property
    def lost(self) -> Mapping[str, ContentLost]:
        """The documents that are left out because their content is lost: path -> why."""
        return self.writer.lost

    @property
    def tail(self) -> Tail:
        """The durable end of the log."""
        return self.storage.tail()

    async def ask(
        self, payload: msgspec.Struct, request_id: str, answers: Collection[str], seconds: float = 60.0
    ) -> Event:
        """Append an operator's request (idempotent by ``request_id``) and return the event of one of the types
        ``answers`` that answers it, when the documents that follow from it are on disk.

        Raises Refused, RequestReused, TimedOut, OutcomeUnknown.
        """
        return await self.ask_draft(self.drafted(payload, request_id), answers, seconds)

    def drafted(self, payload: msgspec.Struct, request_id: str) -> Draft:
        """An operator's request as it will stand in the log (call it in a thread when it is large). May write a blob.

        Raises msgspec.ValidationError when it does not have the shape of its type, OSError when a blob cannot be
        written.
        """
        return self.runtime.intake.fact(payload, request_id, OPERATOR, request_id)

    async def ask_draft(
        self, draft: Draft, answers: Collection[str], seconds: float = 60.0, *, whole: bool = False,
        but: Collection[str] = (), shown: bool = True,
    ) -> Event:
        """``ask`` for a request that is ``drafted`` already. ``whole``: nothing in it, ``but`` these fields, is of the
        moment or the settings, so that with another content it is another request. Unless ``shown``, the documents are
        not waited for: the stop switch depends on none."""
        request_id = draft.id
        await self._check_unused(draft, whole=whole, but=but)
        wanted = frozenset((*answers, "request.refused"))
        first = self._asking.setdefault(request_id, draft) is draft
        find = partial(self._requests.answer, correlation=draft.correlation, answers=wanted)
        try:
            event = await self.runtime.ask(draft, lambda found: found.type in wanted, find, seconds)
        finally:
            if first:
                del self._asking[request_id]
        if shown:
            await self.flush()
        if isinstance(event.data, RequestRefused):
            raise Refused(
                f"{event.data.name} is {event.data.reason}, so {request_id} gets no answer",
                f"pmagent log why {event.position} shows why; start again with a version that does not fail",
            )
        return event

    async def tell_draft(self, draft: Draft) -> int:
        """Append a request (idempotent by its id) whose answer is not waited for; its position, when it is durable
        together with all that was decided on it at once. Raises RequestReused, OutcomeUnknown."""
        await self._check_unused(draft)
        event = await self.runtime.append_draft(draft)
        position = event.position if event is not None else self.runtime.engine.sequencer.seen(draft.id)
        assert position is not None, "appended now or before"
        return position

    async def _check_unused(self, draft: Draft, *, whole: bool = False, but: Collection[str] = ()) -> None:
        """A request that is sent again is the same request; nothing would ever answer another under its id."""
        known = self.runtime.engine.sequencer.seen(draft.id)
        if known is None:
            return
        if known <= self.tail.position:
            stood = await self._requests.event(known)
            type, raw = stood.type, stood.raw
        elif draft.id in self._asking:  # on its way to the disk
            type, raw = self._asking[draft.id].type, self._asking[draft.id].raw
        else:
            return
        if type != draft.type or (whole and _without(raw, but) != _without(draft.raw, but)):
            what = type if type != draft.type else f"another {type}"
            raise RequestReused(f"the request id {draft.id} was used for {what} (position {known})", "use a new id")

    async def answer_in_log(self, request: int, correlation: str, answers: Collection[str]) -> Event | None:
        """The answer to a request that stands in the log already: somebody lost a connection and asks again, or looks
        what has come of it so far."""
        return await self._requests.answer(request, correlation, answers)

    def hear(self, events: Sequence[Event], sums: Sequence[str]) -> None:
        """Listener: fold durable events into the documents."""
        self._requests.hear(events)
        self.writer.hear(events, sums)
        self._heard = events[-1].position
        if self._news is not None:
            self._news.set()
            self._news = None

    async def ready(self) -> None:
        """Return when each area has what outward effects need since this start."""
        for edge in EDGES:
            if edge.ready:
                await load(edge.ready)(self)

    def event(self, position: int) -> Event:
        """The durable event at ``position``. Raises NotFound, CorruptLog."""
        return typed(event_at(self.storage, position), self._blobs)

    async def until(self, stands: Callable[[], bool]) -> None:
        """Return when ``stands()``, which looks at the actors' states, is true and what made it so is durable."""
        while not stands():
            await self._next()
        position = self.runtime.engine.sequencer.position
        while self._heard < position:
            await self._next()

    async def flush(self) -> None:
        """Return when the documents on disk show everything that is durable now. Raises what stood in the writer's
        way."""
        await self._all_heard()
        await self.writer.flush()

    async def write_last(self) -> None:
        """At the end: what is still to be written."""
        if not self.writer.failed:
            await self._all_heard()
            await self.writer.last()

    async def _all_heard(self) -> None:
        """Others read the log, and may know of an event before this loop does."""
        durable = self.tail.position
        while self._heard < durable:
            await self._next()

    async def _next(self) -> None:
        """Return when more is durable."""
        if self._news is None:
            self._news = anyio.Event()
        await self._news.wait()


def _without(raw: bytes, fields: Collection[str]) -> object:
    """A payload's content, without these of its fields."""
    if not fields:
        return raw
    return {name: value for name, value in msgspec.json.decode(raw).items() if name not in fields}


@asynccontextmanager
async def open_host(
    workspace: Path, surface: str, stop_reason: Callable[[], str] = lambda: "done",
    *, resources: Iterable[object] = (), adopting: bool = False, configured: bool = True, must_write: bool = True,
    taken: Taken | None = None,
) -> AsyncIterator[Host]:
    """Take the lock, recover, go live; an orderly stop when the block ends. ``surface`` says who runs it (daemon, or
    the command), ``stop_reason`` is asked at the end. ``resources`` take the place of those of their classes that the
    areas make. ``adopting``: the log need not be trusted, and nothing of it goes on: no effect is performed, whatever
    is requested ends as cancelled, and the registry hears of the log when ``register`` is called. Unless
    ``must_write``, a document that cannot be written ends nothing; it is ``unwritten``. ``taken``: a standby has taken
    the log already.

    Raises LogNotTrusted, EventsGone, LogGone, RegistryUnusable before anything is written; BadPath, LogLocked,
    CorruptLog, HistoryError, OSError; OutcomeUnknown when the log failed meanwhile.
    """
    layout = Layout(workspace)
    require_text(workspace)
    if configured and not adopting:
        require_accepted(workspace)
    if adopting:
        check_files(layout, layout.store.identity().owner)
    else:
        check_before(layout)
        require_log(layout)
    layout.prepare()
    store = taken.store if taken is not None else layout.store
    with store.lease(surface) if taken is None else nullcontext(taken.lease) as lease:
        known = None if adopting else admitted(layout)
        sweep(layout.workspace, *(load(folder) for edge in EDGES for folder in edge.folders))
        with closing(lease.open()) as storage:
            keeper = Keeper(layout, known, storage, idle=adopting)
            made = resources_of(EDGES, {} if adopting else os.environ)
            kept = Resources((*made, *resources))
            with fenced(storage.lease) as held:
                log_id = storage.log_id()
                folded = taken.follower.folded(storage) if taken is not None else None
                folded = folded or Folded(layout, keeper.snapshot, log_id, storage, store.blobs())
                async with _live(
                    layout, store, storage, held, folded, surface, stop_reason, kept, keeper, must_write=must_write
                ) as host:
                    yield host


@asynccontextmanager
async def _live(
    layout: Layout, store: LogStore, storage: Storage, held: FencedLease | None, folded: Folded, surface: str,
    stop_reason: Callable[[], str], resources: Resources, keeper: Keeper, *, must_write: bool,
) -> AsyncIterator[Host]:
    adopting = keeper.idle
    blobs, log_id = store.blobs(), storage.log_id()
    blobs.clear_unfinished()
    folded.fold(storage, storage.tail().position)
    engine, documents, old = folded.engine, folded.documents, folded.old
    ended: list[PruneEnded] = []
    if not adopting:
        try:
            ended = list(finish_all(storage, blobs, documents.pruning))
        except (OSError, CorruptLog) as error:  # they stay, and the next start tries again
            what = f"blobs of pruned runs cannot be removed: {error}"
            old.unwritten = old.unwritten or DocumentUnwritable(what, "mend that; the next start removes them")
    taker = SnapshotTaker(layout.snapshot, log_id, engine, documents, keeper.snapshot_written)
    code_digest()
    code_stamp()  # both of the code that runs, and kept: at the end another release may lie there
    intake = Intake(Redactor(known_secrets(os.environ)), blobs)
    io = RealIo(layout.workspace, intake, partial(read_event, store), storage.tail().time)

    first = opening_events(storage, log_id, storage.recovered, engine.sequencer, io.now())
    unfinished = engine.effects.unfinished()
    completed = engine.complete(io.now())
    made = performers_of(EDGES, resources)
    elsewhere = None if adopting else next((one for one in resources if isinstance(one, Elsewhere)), None)
    if elsewhere is not None:
        elsewhere.join(store, engine.effects)
    performed = dict.fromkeys(made, _end_adopted) if adopting else made
    live = held.live if held is not None else None
    runtime = Runtime(engine, storage, performed, intake, io, live, elsewhere)
    host = Host(layout, runtime, documents, storage, blobs, resources, keeper, store)
    host.writer.unwritten = old.unwritten
    host.writer.must_write = must_write
    host.writer.lost.update(old.lost)
    for hear in (getattr(one, "hear", None) for one in resources):
        if hear is not None:
            runtime.listen(hear)
    runtime.listen(io.hear)
    runtime.listen(host.hear)
    runtime.listen(taker.hear)
    runtime.listen(keeper.hear)
    for output in (Output(first, [], []), completed):  # in the order of their positions
        if output.events:
            runtime.submit(output)
    if adopting:  # an effect that may be performed again is ended when the actor that asked for it has been
        unfinished = Unfinished([event for event in unfinished.begun if not is_repeatable(event.data)])
    async with runtime.run(unfinished, hold_outward=True) as tasks:
        if held is not None:
            tasks.start_soon(held.keep, runtime)
        # Before anything that came due meanwhile: who takes up what was left has to know who lives now.
        started = DaemonStarted(
            version=__version__, python=platform.python_version(), surface=surface, libraries=libraries(),
            kernel_surfaces=expected(layout.workspace.resolve()),
        )
        await runtime.append(started, f"daemon.started:{log_id}:{engine.sequencer.position}", "daemon")
        for one in ended:
            await runtime.append(one, f"control.prune_ended:{log_id}:{one.pruned}", "daemon")
        tasks.start_soon(_release_outward, host)
        await host.writer.first()
        tasks.start_soon(host.writer.go)
        tasks.start_soon(_keep_snapshots, taker)
        tasks.start_soon(keep_registry, keeper)
        try:
            yield host
        finally:
            with anyio.CancelScope(shield=True):
                await _stop(host, log_id, stop_reason())
    final = taker.final(storage.tail(), lambda: note_of(engine, log_id, storage.tail()))
    if final is not None:
        taker.write(final)
    keeper.write()


async def _end_adopted(event: Event, _: Io) -> EffectCancelled:
    """The performer of everything while a log is adopted."""
    return EffectCancelled(request=event.position, reason="adopted")


async def _stop(host: Host, log_id: str, reason: str) -> None:
    if host.runtime.failure is None:
        position = host.runtime.engine.sequencer.position
        await host.runtime.final(DaemonStopped(reason=reason), f"daemon.stopped:{log_id}:{position}", "daemon")
        await host.write_last()


async def _release_outward(host: Host) -> None:
    await host.ready()
    host.runtime.release_outward()


async def _keep_snapshots(taker: SnapshotTaker) -> None:
    while True:
        await anyio.sleep(1.0)
        content, taker.ready = taker.ready, None
        if content is not None:
            await anyio.to_thread.run_sync(taker.write, content)


async def fail_with_log(host: Host) -> None:
    """Wait until the log fails, and raise why: then so has whatever goes on in this host."""
    await host.runtime.failed.wait()
    if host.runtime.failure is not None:
        raise host.runtime.failure
