"""Keeping the documents on disk what the log says, in a live process (docs/design.md §7).

Documents follow durable events; many changes at once are one write, and after a write nothing is written for a while,
unless somebody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from pmagent.contracts.payload import BlobSource
from pmagent.events.event import Event
from pmagent.projections.core.disk import ContentLost, DocumentStore, DocumentUnwritable, note_halts
from pmagent.projections.core.documents import Documents, Taken
from pmagent.projections.core.projection import Halt
from pmagent.projections.rebuild import rewrite_documents
from pmagent.projections.registry import all_projections

PAUSE_FACTOR: Final = 19.0
"""After documents have been written nothing is written for so many times as long as that took, unless somebody waits
for it: a long run's documents are large, and change all the time."""
PAUSE_SECONDS_MAX: Final = 10.0
"""The longest such pause."""


class OldDocuments:
    """Writes what a crash has left different of documents that are no part of the state any more. They are final, and
    were written long since: one that cannot be is told, and ends nothing."""

    def __init__(self, workspace: Path, blobs: BlobSource) -> None:
        self._store = DocumentStore(workspace, blobs)
        self.lost = self._store.lost
        self.unwritten: DocumentUnwritable | None = None

    def write(self, documents: Taken) -> None:
        """Write those that differ."""
        try:
            self._store.write(documents, by_size=True)
        except DocumentUnwritable as error:
            self.unwritten = self.unwritten or error


class DocumentWriter:
    """Folds durable events into ``documents`` and keeps those on disk. For one event loop."""

    def __init__(self, workspace: Path, documents: Documents, blobs: BlobSource) -> None:
        self.documents = documents
        self._workspace = workspace
        self._store = DocumentStore(workspace, blobs)
        self._writing = anyio.Lock()
        self._dirty = anyio.Event()
        self._urged = anyio.Event()
        self._written = anyio.Condition()
        self._folded = 0
        self._flushed = 0
        self._ended = False
        self._unwritable: DocumentUnwritable | None = None
        self._noted: list[Halt] | None = None  # on disk; not known before the first write
        self.must_write = True
        """Whether a document that cannot be written ends the host; else it is ``unwritten``, and nothing more."""
        self.unwritten: DocumentUnwritable | None = None
        """Why not every document could be written at the start; None again when all could be written since."""
        self.lost: dict[str, ContentLost] = {}
        """The documents that are left out because their content is lost, as of the last time that they were looked
        at."""
        self.tell_lost: Callable[[dict[str, ContentLost]], None] = lambda _: None
        """Called with each document that is left out, once."""

    @property
    def failed(self) -> bool:
        """Whether a document could not be written, and ``go`` ended because of it."""
        return self._unwritable is not None

    def hear(self, events: Sequence[Event], sums: Sequence[str]) -> None:
        """Take durable events."""
        if self.documents.fold(events, sums):
            self._folded = events[-1].position
            self._dirty.set()

    async def flush(self) -> None:
        """Return when the documents on disk show everything that has been heard. Raises what stood in the way."""
        target = self._folded
        if self._flushed < target:
            self._urged.set()
        async with self._written:
            while self._flushed < target and not self._ended:
                await self._written.wait()
        if self._unwritable is not None:
            raise self._unwritable

    async def go(self) -> None:
        """Write what changed, for ever; many changes at once are one write. Raises DocumentUnwritable: a document that
        cannot be written ends the daemon rather than showing an old state as the present one."""
        try:
            while True:
                await self._dirty.wait()
                self._dirty, self._urged = anyio.Event(), anyio.Event()
                began = anyio.current_time()
                await self._write_changed()
                with anyio.move_on_after(min((anyio.current_time() - began) * PAUSE_FACTOR, PAUSE_SECONDS_MAX)):
                    await self._urged.wait()
        except DocumentUnwritable as error:
            self._unwritable = self.unwritten = error
            if self.must_write:
                raise
        finally:  # whoever waits for it must not wait for ever
            with anyio.CancelScope(shield=True):
                async with self._written:
                    self._ended = True
                    self._written.notify_all()

    async def first(self) -> None:
        """Write what a crash, or somebody's hand, has left different from the log.

        Where a document cannot be written the reason may be the kernel's (``share`` is no folder), and then it is the
        OA's to tell; so this is only remembered, as ``unwritten``, and the next document that changes brings it to
        light if it still holds.
        """
        try:
            await self._write(by_size=True)
        except DocumentUnwritable as error:
            self.unwritten = self.unwritten or error
            self.documents.doubt()

    async def last(self) -> None:
        """At the end: what is still to be written, also when ``go`` was stopped by somebody else's error."""
        try:
            if self._ended:
                await self._write_changed()
            await self.flush()
        except DocumentUnwritable as error:
            self.unwritten = error
            if self.must_write:
                raise

    async def rewrite(self) -> tuple[list[tuple[str, bool]], list[Halt]]:
        """Write what is not on disk as the log says, from the log; each document's path, and whether it was written;
        and the projections that are halted. Raises DocumentUnwritable, CorruptLog."""

        def rewrite() -> tuple[list[tuple[str, bool]], list[Halt]]:
            anew = Documents(all_projections())
            written = list(rewrite_documents(self._workspace, anew))
            halts = list({**anew.halted, **self.documents.halted}.values())
            self._note(halts)
            return written, halts

        async with self._writing:
            found = await anyio.to_thread.run_sync(rewrite)
        self.lost.clear()
        return found

    def _note(self, halts: list[Halt]) -> None:
        note_halts(self._workspace, halts)
        self._noted = halts

    async def _write_changed(self) -> None:
        folded = await self._write()
        self.unwritten = None
        async with self._written:
            self._flushed = folded
            self._written.notify_all()

    async def _write(self, *, by_size: bool = False) -> int:
        """Write what may have changed; the position up to which documents then show what happened."""
        with anyio.CancelScope(shield=True):
            async with self._writing:
                folded = self._folded
                write = partial(self._put, self.documents.take(), by_size=by_size)
                await anyio.to_thread.run_sync(write)
        self.documents.settle()
        self._note_lost()
        return folded

    def _put(self, documents: Taken, *, by_size: bool) -> None:
        """Write documents, between two looks at what is halted: computing them may halt their projections."""
        for write in (lambda: None, lambda: self._store.write(documents, by_size=by_size)):
            write()
            halts = list(self.documents.halted.values())
            if halts != self._noted:
                self._note(halts)

    def _note_lost(self) -> None:
        found = {path: error for path, error in self._store.lost.items() if path not in self.lost}
        self.lost.update(found)
        if found:
            self.tell_lost(found)
