"""Finding what came of a request that is sent again, without reading the log on the event loop.

The answers to recent requests are kept in an index as they become durable. Of older ones the log is read, in a
thread with a reader of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from contextlib import closing
from typing import Final

import anyio.to_thread
import msgspec

from pmagent.contracts.payload import typed
from pmagent.events.event import Event
from pmagent.events.reader import events_of_types
from pmagent.events.store import LogStore
from pmagent.service.io import read_event

OPERATOR: Final = "operator"
"""The actor of facts that a person's command makes."""

FAR: Final = -1
"""The ``asker`` of requests from another machine, through the database of the log: no process of this one."""

REQUESTS_MAX: Final = 4096
"""So many requests are kept in the index; of an older one the log is read."""


class Requests:
    """The requests of one log and what came of them. For one event loop."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._index: OrderedDict[str, tuple[int, dict[str, int]]] = OrderedDict()
        """Correlation -> the position of its first request, and of each type of event the first position."""

    def hear(self, events: Sequence[Event]) -> None:
        """Take durable events."""
        for event in events:
            known = self._index.get(event.correlation)
            if known is None:
                if event.kind != "fact" or event.actor != OPERATOR:
                    continue
                known = self._index[event.correlation] = (event.position, {})
                if len(self._index) > REQUESTS_MAX:
                    self._index.popitem(last=False)
            known[1].setdefault(event.type, event.position)

    async def answer(self, request: int, correlation: str, answers: Collection[str]) -> Event | None:
        """The first durable event of one of the types ``answers`` from the request on; None when there is none yet.
        Raises NotFound, CorruptLog."""
        first, known = self._index.get(correlation, (0, {}))
        found = [known[name] for name in answers if name in known]
        if 0 < first <= request and all(position >= request for position in found):
            return await self.event(min(found)) if found else None
        return await anyio.to_thread.run_sync(self._search, request, correlation, answers, abandon_on_cancel=True)

    async def event(self, position: int) -> Event:
        """The durable event at ``position``, its payload decoded. Raises NotFound, CorruptLog."""
        return await anyio.to_thread.run_sync(read_event, self._store, position)

    def _search(self, request: int, correlation: str, answers: Collection[str]) -> Event | None:
        with closing(self._store.reader()) as log:
            for stored in events_of_types(log, request, answers, msgspec.json.encode(correlation)):
                if stored.correlation == correlation:
                    return typed(stored, self._store.blobs())
        return None
