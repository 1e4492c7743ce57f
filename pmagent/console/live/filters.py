"""Which events a stream tells: the filters of the log page, as they stand in its address."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import msgspec
from starlette.datastructures import QueryParams

from events.event import StoredEvent
from pmagent.log.query import BadFilter, Query, compiled
from pmagent.when import moment

POSITION_MAX: Final = 2**53 - 1
"""Positions are numbers in a browser, too."""


class Wanted(msgspec.Struct, frozen=True):
    """``key`` is the same for the same filters: what is made of events for one stream is made for all of that key."""

    key: tuple[object, ...]
    matches: Callable[[StoredEvent], bool]
    stop: int | None
    """The last position that is wanted; None: no end."""
    until: str
    """The log time from which on nothing is wanted; "": no end."""

    def beyond(self, event: StoredEvent) -> bool:
        """Whether neither this event nor a later one is wanted."""
        if self.stop is not None and event.position > self.stop:
            return True
        return bool(self.until) and event.time >= self.until


def number(name: str, text: str, default: int) -> int:
    """The position that a parameter gives; ``default`` when it is empty. Raises BadFilter."""
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 16 or int(text) > POSITION_MAX:
        raise BadFilter(f"{name}={text[:40]!r} is no position", f"a whole number, e.g. {name}=1284")
    return int(text)


def wanted(parameters: QueryParams) -> Wanted:
    """What the parameters ask for. Raises BadFilter, BadTime."""
    query = Query(
        types=_all(parameters, "type"), excluded=_all(parameters, "exclude"), actors=_all(parameters, "actor"),
        correlations=_all(parameters, "correlation"), fields=_all(parameters, "field"),
        grep=parameters.get("grep", ""),
    )
    until, stop = parameters.get("until", ""), None
    if until.startswith("pos:"):
        stop, until = number("until", until[4:], 0), ""
    elif until:
        until = moment(until, datetime.now(UTC))
    key = (*(tuple(part) for part in msgspec.structs.astuple(query)), stop, until)
    return Wanted(key, compiled(query), stop, until)


def _all(parameters: QueryParams, name: str) -> list[str]:
    """The values of a filter, without those that a form leaves empty, in an order that does not depend on the asker."""
    return sorted({value for value in parameters.getlist(name) if value})
