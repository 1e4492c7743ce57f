"""Which events a stream tells: the filters of the log page, held against each run once for all who have them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Final

import anyio
import anyio.to_thread
from starlette.datastructures import QueryParams

from pmagent.console.live.feed import Run
from pmagent.console.live.messages import message
from pmagent.console.live.packing import NOTHING, Piece
from pmagent.console.pages.reading.lines import rows
from pmagent.console.pages.reading.log_address import LogPageQuery, read
from pmagent.console.pages.reading.searching import picking
from pmagent.events.errors import PmagentError
from pmagent.events.event import StoredEvent
from pmagent.log.query import BadFilter
from pmagent.log.ranges import Pick

EXPRESSIONS_MAX: Final = 8
"""So many different expressions are searched for at once: each has a process of its own."""

_OWN: Final = ("after", "log", "topics")
_UNUSED: Final = ("since", "until", "before")


class TooManyExpressions(PmagentError, exit_code=1):
    """More expressions are searched for live than there may be."""


def query_of(parameters: QueryParams) -> LogPageQuery:
    """The filter in a stream's address. Raises BadFilter."""
    for name in _UNUSED:
        if parameters.get(name):
            raise BadFilter(f"what is followed has no {name}", "after=POSITION says where it begins")
    asked, wrong = read(QueryParams([pair for pair in parameters.multi_items() if pair[0] not in _OWN]))
    if wrong:
        raise BadFilter("; ".join(f"{name}: {why}" for name, why in wrong.items()))
    return asked


class Filter:
    """Makes rows of the events that are wanted, once for each run."""

    def __init__(self, key: tuple[object, ...], pick: Pick, *, blocking: bool) -> None:
        self._key = key
        self._pick = pick
        self.blocking = blocking
        self._turn = anyio.Lock()
        self.users = 0

    async def lines(self, run: Run, position: int) -> Piece:
        """The message with the rows of ``run`` behind ``position``; ``NOTHING`` for none. Raises TooSlow, OSError."""
        events = run.behind(position)
        if len(events) != len(run.events):
            return await self._made(events)  # nobody else begins just there
        known = run.known(self._key)
        if known is None and not self.blocking:
            known = self._piece(events, self._pick(events))
            run.keep(self._key, known)
        elif known is None:
            async with self._turn:
                known = run.known(self._key)
                if known is None:
                    known = await self._made(events)
                    run.keep(self._key, known)
        return known

    async def _made(self, events: Sequence[StoredEvent]) -> Piece:
        pick = self._pick
        return self._piece(events, await anyio.to_thread.run_sync(pick, events) if self.blocking else pick(events))

    def _piece(self, events: Sequence[StoredEvent], found: Sequence[StoredEvent]) -> Piece:
        if not found:
            return NOTHING
        position = events[-1].position
        return message("lines", {"html": str(rows(found)), "count": len(found), "position": position}, position)


class Filters:
    """Those of all streams."""

    def __init__(self) -> None:
        self._open: dict[tuple[object, ...], tuple[Filter, ExitStack]] = {}

    @asynccontextmanager
    async def use(self, asked: LogPageQuery) -> AsyncIterator[Filter]:
        """The filter for ``asked``, the same one for all who ask for the same. Raises BadFilter, TooManyExpressions."""
        key = tuple(asked.filters())
        if key not in self._open:
            self._open[key] = self._opened(key, asked)
        found, held = self._open[key]
        found.users += 1
        try:
            yield found
        finally:
            found.users -= 1
            if not found.users:
                del self._open[key]
                with anyio.CancelScope(shield=True):
                    await anyio.to_thread.run_sync(held.close)

    def _opened(self, key: tuple[object, ...], asked: LogPageQuery) -> tuple[Filter, ExitStack]:
        expressions = sum(other.blocking for other, _ in self._open.values())
        if asked.query.grep and expressions >= EXPRESSIONS_MAX:
            raise TooManyExpressions(
                f"{EXPRESSIONS_MAX} expressions are searched for live by now", "close another page that searches"
            )
        held = ExitStack()
        pick = held.enter_context(picking(asked.query))
        return Filter(key, pick, blocking=bool(asked.query.grep)), held
