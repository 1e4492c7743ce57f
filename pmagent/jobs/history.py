"""The jobs that a log tells of; reading only, whoever writes it (docs/design.md §7)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import msgspec

from pmagent.contracts.payload import typed
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.event import Event, Tail
from pmagent.events.reader import event_at
from pmagent.events.reader import runs as event_runs
from pmagent.events.storage import Blobs, LogReader
from pmagent.jobs.kinds import Kind
from pmagent.jobs.registry import KINDS
from pmagent.projections.views import jobs
from pmagent.workspace.layout import Layout

ID_CHARS: Final = 36


class NoSuchJob(PmagentError, exit_code=1):
    """The log tells of no job that is called so, or of several."""


class Cancelling(msgspec.Struct, frozen=True):
    """An operator (over ``channel``; both "" where they are not known) wanted the job to end, because of ``reason``."""

    position: int
    time: str
    operator: str
    channel: str
    reason: str


class Jobs:
    """The log of a workspace, and what lies beside it. Use ``opened``."""

    def __init__(self, storage: LogReader, blobs: Blobs) -> None:
        self.storage = storage
        self.blobs = blobs

    def at(self, position: int) -> Event:
        """The event at ``position``. Raises NotFound, CorruptLog."""
        return typed(event_at(self.storage, position), self.blobs)

    def brief(self, kind: Kind, requested: int, ended: int) -> Any:
        """The ``JobView`` of the job requested at one position and ended at the other (0: it is open), by these two
        events alone. Raises CorruptLog."""
        first = event_at(self.storage, requested)
        view = kind.begun(typed(first, self.blobs), first.sum)
        if not ended:
            return view
        event = self.at(ended)
        return jobs.ended(view, event, kind.end_of(event.data))

    def view(self, kind: Kind, requested: int) -> Any:
        """The ``JobView`` of the job requested at this position, as far as the log goes. Raises CorruptLog."""
        first = event_at(self.storage, requested)
        view = kind.begun(typed(first, self.blobs), first.sum)
        for run in event_runs(self.storage, requested + 1):
            for stored in run:
                if stored.correlation == first.correlation:
                    view = kind.evolved(view, typed(stored, self.blobs), stored.sum)
                    if view.over:
                        return view
        return view

    def cancelling(self, position: int) -> Cancelling | None:
        """The wish to end a job that is the event at ``position``; None for an event of another kind, and for 0. Raises
        CorruptLog."""
        if not position:
            return None
        event = self.at(position)
        data = event.data
        if not any(isinstance(data, kind.cancellation) for kind in KINDS):
            return None
        return Cancelling(event.position, event.time, data.operator_id, data.channel, data.reason)


@contextmanager
def opened(layout: Layout) -> Iterator[Jobs]:
    """The workspace's log, for reading; nothing is written. Raises NotFound where there is none; CorruptLog where it
    cannot be told how far it is durable."""
    store = layout.store
    try:
        storage = store.reader()
    except NotFound:
        raise NotFound(
            f"there is no log in {layout.workspace}",
            "pmagent init makes a workspace, pmagent run or up begins its log",
        ) from None
    with closing(storage):
        yield Jobs(storage, store.blobs())


def still_holds(storage: LogReader, tail: Tail) -> bool:
    """Whether the log still holds the line that ``tail`` names: its sum vouches for all before it, which need not be
    read again. Raises CorruptLog where no line is where it must be."""
    if tail.position == 0:
        return True
    line = storage.read(tail.position, 1)
    return line.endswith(b',"sum":"%b"}\n' % tail.sum.encode())
