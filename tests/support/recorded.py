"""Histories as logs in memory, and logs that somebody altered and whose chain was computed anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from pmagent.events.event import Event, StoredEvent, Tail
from pmagent.events.line import seal
from pmagent.events.reader import events
from pmagent.events.storage import StorageReader
from tests.support.memory_storage import MemoryStorage


def stored_log(history: Iterable[Event]) -> MemoryStorage:
    """A log that holds ``history``, one batch an event."""
    storage = MemoryStorage()
    for event in history:
        before = storage.tail()
        lines, sums = seal([event], before.batch + 1, before)
        storage.append_batch(before, lines, Tail(event.position, before.batch + 1, event.time, sums[-1]))
    return storage


def as_event(stored: StoredEvent) -> Event:
    """A stored event in its place, its payload left as bytes."""
    return Event(
        stored.position, stored.time, stored.id, stored.kind, stored.actor, stored.type, stored.correlation,
        stored.causation, None, bytes(stored.data),
    )


def altered_log(log: StorageReader, changes: Mapping[int, Callable[[Event], Event | None]]) -> MemoryStorage:
    """``log`` with the events at the positions of ``changes`` changed, or left out (None): positions and causes are
    moved up, and the chain is computed anew, so that ``log verify`` finds nothing."""
    moved: dict[int, int] = {}
    kept: list[Event] = []
    for stored in events(log):
        event: Event | None = as_event(stored)
        assert event is not None, "just made"
        if stored.position in changes:
            event = changes[stored.position](event)
        if event is not None:
            moved[stored.position] = len(kept) + 1
            kept.append(
                msgspec.structs.replace(
                    event, position=len(kept) + 1, causation=moved.get(event.causation, event.causation)
                )
            )
    return stored_log(kept)


def inserted_log(log: StorageReader, behind: int, make: Callable[[Event], Event]) -> MemoryStorage:
    """``log`` with one more event behind position ``behind``, made from the one there; later ones are left out, so
    that no id needs to change."""
    kept = [as_event(stored) for stored in events(log, 1, behind)]
    kept.append(msgspec.structs.replace(make(kept[-1]), position=behind + 1))
    return stored_log(kept)
