"""Placing attempts on workers: the holder's side (docs/design.md §4.7, docs/machines.md).

An attempt whose task, or whose run's configuration, names labels goes into the table of attempts while a worker with
these labels is there, and its task only reads. Its performer follows the row until it is over; whoever holds the log
next takes it up there.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from time import monotonic
from typing import Final

import anyio
import anyio.to_thread
import msgspec
from msgspec import UnsetType

from pmagent.actors.core.actor import Io, Performers, Resources
from pmagent.actors.core.claims import Adopt, AskStop, Claim, Ended, Hold, Insert, Lose, Offer, Row, Step, Withdraw
from pmagent.actors.core.ledger import GATE, EffectLedger
from pmagent.actors.orchestra.running.effects import Attempts, before, captured, kept
from pmagent.actors.orchestra.running.sandbox_spec import HIDDEN, OUTPUT_BYTES, absolute
from pmagent.actors.sandbox.artifacts import Bounds, remove
from pmagent.actors.sandbox.spec import Outcome, within
from pmagent.contracts.control import EffectsPaused, EffectsResumed
from pmagent.contracts.effect import EffectFailed, EffectInterrupted
from pmagent.contracts.oa import OaPermitGranted
from pmagent.contracts.orchestra import Artifact
from pmagent.contracts.orchestra_events import (
    Captured,
    RunRequested,
    TaskAssigned,
    TaskAttemptRequested,
    TaskExited,
    TaskUnstarted,
)
from pmagent.events.attempts import AttemptRow, HolderTable, Offering, TableUnreachable
from pmagent.events.event import Event
from pmagent.events.evidence import external_evidence
from pmagent.events.lease import SECOND
from pmagent.events.store import LogStore
from pmagent.when import seconds_between
from pmagent.workers.wish import FILES, STDOUT_END, BadLoad, Load, Told, Wish, boottime, pack

LEASE: Final = 30 * SECOND
"""Of a claim. A worker that is silent for so long, and a tenth, is lost."""

LOOK_SECONDS: Final = 0.2
"""Between two looks at the rows."""

THERE_SECONDS: Final = 30.0
"""A worker is there if it said so within this time."""

WRITES: Final = Bounds().total_bytes + 8 * OUTPUT_BYTES
"""So many bytes an attempt may send."""

_PACKED_SECONDS: Final = 1.0
"""So long the workspace's files count as packed, for attempts that follow one another."""


class Placement:
    """The attempts of a host's log that go on elsewhere (``pmagent.actors.core.runtime.Elsewhere``)."""

    def __init__(self) -> None:
        self._table: HolderTable | None = None
        self._there: set[int] = set()
        self._unoffered: set[int] = set()  # no row names their files yet
        self._ended: set[int] = set()  # to be forgotten when there are none of those
        self._leaving: set[int] = set()
        self._held = False
        self._rows: dict[int, AttemptRow] | None = None
        self._looked = 0.0
        self._looking = asyncio.Lock()
        self._labels: tuple[float, list[frozenset[str]]] = (-THERE_SECONDS, [])
        self._packed: dict[tuple[str, ...], tuple[float, Load]] = {}
        self._loading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def joined(self) -> bool:
        """Whether there is a table of attempts."""
        return self._table is not None

    def __contains__(self, request: object) -> bool:
        """See Elsewhere."""
        return request in self._there

    def leave(self, request: int) -> None:
        """See Elsewhere."""
        self._leaving.add(request)

    def join(self, store: LogStore, effects: EffectLedger) -> None:
        """The log is held: take up what is in its table. Raises PmagentError."""
        self._table = table = store.attempts()
        self._held = effects.paused
        for row in (table.rows() or []) if table is not None else []:
            if effects.is_open(row.position):
                self._there.add(row.position)
            elif table is not None:
                table.step(row.position, "forget")

    def hear(self, events: Sequence[Event], _sums: Sequence[str]) -> None:
        """Listener: pauses; and what has ended durably, whose row is not needed any more."""
        for event in events:
            data = event.data
            if event.actor == GATE and isinstance(data, EffectsPaused | EffectsResumed):
                self._held = isinstance(data, EffectsPaused)
            elif event.kind == "fact" and event.causation in self._there:  # an outcome; a cancellation ends nothing
                self._there.discard(event.causation)
                self._forgotten(event.causation)

    def _forgotten(self, position: int) -> None:
        task = asyncio.get_running_loop().create_task(self._forget(position))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wanted(self, request: RunRequested, assigned: TaskAssigned) -> list[str] | None:
        """The labels by which the attempt is placed; None: it runs on this host."""
        if self._table is None or assigned.assignment.constraints.sandbox.fs != "read-only":
            return None
        options = request.options.get(assigned.name)
        labels = options.labels if options is not None else []
        workers = request.config.workers
        if not labels and isinstance(workers, UnsetType):
            return None
        if not labels and not isinstance(workers, UnsetType):
            labels = workers.labels
        looked, found = self._labels
        if monotonic() - looked > LOOK_SECONDS * 10:
            with suppress(TableUnreachable):
                found = await anyio.to_thread.run_sync(self._table.labels, THERE_SECONDS)
            self._labels = monotonic(), found
        return labels if any(one.issuperset(labels) for one in found) else None

    def reserve(self, position: int) -> None:
        """Remove no files from now on: this attempt may go by them, until it is ``offered``."""
        self._unoffered.add(position)

    def offered(self, position: int) -> None:
        """The attempt's row names its files, or it needs none."""
        self._unoffered.discard(position)
        if not self._unoffered:
            while self._ended:
                self._forgotten(self._ended.pop())

    def begin(self, position: int) -> None:
        """The attempt goes on elsewhere from now on."""
        self._there.add(position)

    async def loaded(self, root: str, visible: Sequence[str], hidden: Sequence[str], *, again: bool) -> Load:
        """Keep files for workers. ``again``: they may be those that were kept a moment ago. Raises BadLoad, OSError."""
        assert self._table is not None, "it has labels"
        async with self._loading:
            key = root, *visible
            at, load = self._packed.get(key, (-_PACKED_SECONDS, Load("", 0)))
            if not again or monotonic() - at >= _PACKED_SECONDS:
                load, content = await anyio.to_thread.run_sync(pack, root, visible, hidden)
                await anyio.to_thread.run_sync(self._table.load, load.sha256, content)
                if again:
                    self._packed[key] = monotonic(), load
            return load

    async def followed(self, position: int, offering: Offering | None, seconds: float) -> tuple[Ended, str]:
        """The end of an attempt, and who made it. ``offering``: what is put into the table where there is no row;
        ``seconds``: so long it may be begun. A cancellation ends it there first, unless it is left to whoever is the
        next holder."""
        assert self._table is not None, "its row is there"
        offer = Offer(self._table.epoch, LEASE)
        begun_by = monotonic() + seconds
        try:
            return await self._end_of(position, offer, offering, begun_by)
        except anyio.get_cancelled_exc_class():
            if position in self._leaving:
                self._leaving.discard(position)
                raise
            offer.stop()
            with anyio.CancelScope(shield=True):
                ended, worker = await self._end_of(position, offer, offering, begun_by)
            if ended.how != "lost":  # of a result, what was told to stop is not waited for
                raise
            return ended, worker

    async def output(self, position: int, part: int) -> bytes:
        """All that an attempt wrote to one part."""
        assert self._table is not None, "its row is there"
        table = self._table
        return await anyio.to_thread.run_sync(lambda: b"".join(table.output(position, part)))

    async def _end_of(
        self, position: int, offer: Offer, offering: Offering | None, begun_by: float
    ) -> tuple[Ended, str]:
        worker = ""
        while True:
            with suppress(TableUnreachable):
                rows = await self._seen()
                if rows is not None:
                    row = rows.get(position)
                    worker = row.worker if row is not None else worker
                    if monotonic() > begun_by and (row is None or row.state == "open"):
                        offer.stop()
                    for step in self._saw(offer, row):
                        if (ended := await self._step(position, offer, step, offering)) is not None:
                            return ended, worker
            await asyncio.sleep(LOOK_SECONDS)

    def _saw(self, offer: Offer, row: AttemptRow | None) -> list[Step]:
        assert self._table is not None, "its row is there"
        offer.epoch, offer.held = self._table.epoch, self._held
        found = None
        if row is not None:
            found = Row(
                row.state, row.epoch, row.claim, row.renewals, row.stop, row.result.decode("utf-8", "replace"),
                row.timeline,
            )
        return offer.saw(found, boottime())

    async def _step(self, position: int, offer: Offer, step: Step, offering: Offering | None) -> Ended | None:
        """Take a step; the end, if that is one. Raises TableUnreachable."""
        assert self._table is not None, "its row is there"
        table = self._table

        async def taken(name: str, claim: str = "", renewals: int = 0) -> bool:
            self._rows = None
            return await anyio.to_thread.run_sync(table.step, position, name, claim, renewals)

        then: list[Step] = []
        match step:
            case Ended():
                return step
            case Insert():
                if offering is None:  # its row was there, and is not any more: nobody knows what became of it
                    return Ended("lost")
                self._rows = None
                await anyio.to_thread.run_sync(table.offer, position, offering)
                self.offered(position)
            case Adopt():
                await taken("adopt")
            case Hold():
                await taken("hold")
            case AskStop():
                await taken("stop")
            case Withdraw():
                then = offer.withdrawn() if await taken("withdraw") else []
            case Lose(claim, renewals):
                then = offer.lost() if await taken("lose", claim, renewals) else []
        return next((one for one in then if isinstance(one, Ended)), None)

    async def _seen(self) -> dict[int, AttemptRow] | None:
        """The rows, read at most ``LOOK_SECONDS`` ago: all attempts share a look."""
        assert self._table is not None, "its row is there"
        async with self._looking:
            if self._rows is None or monotonic() - self._looked >= LOOK_SECONDS:
                found = await anyio.to_thread.run_sync(self._table.rows)
                self._rows = None if found is None else {row.position: row for row in found}
                self._looked = monotonic()
            return self._rows

    async def _forget(self, position: int) -> None:
        assert self._table is not None, "its row was there"
        with suppress(TableUnreachable):  # the next start does it
            async with self._loading:
                if self._unoffered:  # with a row, files go that no other row names
                    self._ended.add(position)
                    return
                self._packed.clear()
                await anyio.to_thread.run_sync(self._table.step, position, "forget")


class Placed:
    """The performer of ``task.attempt_requested``: on a worker where it is placed, else on this host."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._here = Attempts()

    async def __call__(self, event: Event, io: Io) -> msgspec.Struct:
        """Run the program once, wherever."""
        asked: TaskAttemptRequested = event.data
        placement = self._placement
        if asked.simulated or not placement.joined:
            return await self._here(event, io)
        assigned: TaskAssigned = (await io.event(asked.assigned)).data
        permit = (await io.event(assigned.permit)).data
        seconds = seconds_between(io.now(), permit.expires_at) if isinstance(permit, OaPermitGranted) else 0.0
        if event.position not in placement:
            request: RunRequested = (await io.event(asked.requested)).data
            labels = await placement.wanted(request, assigned)
            if labels is None:
                return await self._here(event, io)
            placement.reserve(event.position)
            try:
                offering = await self._offering(event, request, assigned, labels, seconds, io)
                placement.begin(event.position)
                ended, worker = await placement.followed(event.position, offering, seconds)
            except BadLoad as error:
                return _unstarted(event, error.message, error.hint)
            finally:
                placement.offered(event.position)
        else:
            ended, worker = await placement.followed(event.position, None, seconds)
        if ended.how == "lost":
            return EffectInterrupted(request=event.position, reason="worker lost")
        if ended.how == "withdrawn":
            return _unstarted(event, "no worker began it before its permit expired", "see that workers are there")
        if ended.result == Claim.UNSTARTED:
            return EffectInterrupted(request=event.position, reason="worker lost")
        return await self._outcome(event, ended.result, worker, io)

    async def _offering(
        self, event: Event, request: RunRequested, assigned: TaskAssigned, labels: list[str], seconds: float, io: Io
    ) -> Offering:
        root = str(io.workspace.resolve())
        readable = absolute(root, request.config.security.fs.allow_read)
        visible = [path for path in readable if within(path, root)]
        hidden = [f"{root}/{HIDDEN}", *external_evidence(io.workspace)]
        tree = await self._placement.loaded(root, visible, hidden, again=True)
        inputs = None
        if assigned.after:
            async with _folder(f"{root}/{HIDDEN}/tasks/{event.position}") as folder:
                await before(assigned, io, folder)
                inputs = await self._placement.loaded(folder, [folder], [], again=False)
        wish = Wish(request.config, assigned, event.data, tree, inputs)
        loads = [load.sha256 for load in wish.loads]
        encoded = msgspec.json.encode(wish)
        return Offering(labels, encoded, loads, WRITES, LEASE // 1_000_000, seconds)

    async def _outcome(self, event: Event, result: str, worker: str, io: Io) -> msgspec.Struct:
        position = event.position
        try:
            told = msgspec.json.decode(result, type=Told)
        except msgspec.DecodeError:
            return EffectFailed(request=position, error="BadReport", place=f"worker {worker}"[:200])
        if told.refused:
            return _unstarted(event, f"worker {worker}: {told.refused}", told.mend, security=told.security)
        if told.stopped or (told.exit_code is None) == (told.signal is None):
            return EffectInterrupted(request=position, reason="worker stopped")
        streams = [await self._stream(position, part, told, io) for part in range(STDOUT_END)]
        artifacts = []
        for number, file in enumerate(told.files):
            async with io.store_stream() as stream:
                await stream.write(await self._placement.output(position, FILES + number))
                stored = await stream.finish()
            artifacts.append(Artifact(
                path=io.masked(file.path), size_bytes=stored.size, checksum=stored.sha256, gap_at=stored.gap_at,
                gap_bytes=stored.gap,
            ))  # fmt: skip
        outcome = Outcome(
            exit_code=told.exit_code, signal=told.signal, timed_out=told.timed_out, exceeded=told.exceeded, stdout=b"",
            stderr=b"", stdout_bytes=told.totals[0], stderr_bytes=told.totals[1], seconds=told.seconds, planted=(),
            unenforced=tuple(told.unenforced), contacts_dropped=told.contacts_dropped,
        )
        exited: TaskExited = await kept(event, outcome, streams[0], streams[1], artifacts, told.skipped, io)
        return msgspec.structs.replace(
            exited, notes=[*exited.notes, f"it ran on the worker {worker}"], contacts=told.contacts,
        )

    async def _stream(self, position: int, part: int, told: Told, io: Io) -> Captured:
        head, tail = await self._placement.output(position, part), None
        if part in told.cut:
            tail = await self._placement.output(position, part + STDOUT_END)
        return await captured(head, tail, max(told.totals[part], len(head)) if tail is None else told.totals[part], io)


@asynccontextmanager
async def _folder(path: str) -> AsyncIterator[str]:
    """A folder for the length of a block."""
    await anyio.to_thread.run_sync(partial(os.makedirs, path, 0o700))
    try:
        yield path
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(remove, path)


def _unstarted(event: Event, reason: str, mend: str, *, security: bool = False) -> TaskUnstarted:
    asked: TaskAttemptRequested = event.data
    return TaskUnstarted(
        request=event.position, run_id=asked.run_id, task_id=asked.task_id, attempt=asked.attempt, reason=reason,
        mend=mend, security=security, again=False,
    )


def resources(_: Mapping[str, str]) -> Iterable[object]:
    """The placement of a host."""
    return (Placement(),)


def performers(kept: Resources) -> Performers:
    """Attempts of tasks, here or elsewhere."""
    return {TaskAttemptRequested: Placed(kept[Placement])}

