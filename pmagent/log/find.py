"""Finding an event by what people have of it: its position, or its id."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from pmagent.events.errors import NotFound
from pmagent.events.reader import event_at
from pmagent.events.storage import StorageReader

_DECISION: Final = re.compile(r"([1-9][0-9]{0,17})\.[^.]+\.[0-9]+")
_CHUNK_BYTES: Final = 1 << 20


class NotYetFound(NotFound):
    """There was no time to look further; ``position`` is where to go on."""

    def __init__(self, wanted: str, position: int) -> None:
        super().__init__(f"there is no event {wanted[:200]!r} before position {position}", "look further from there on")
        self.position = position


def _always() -> bool:
    return True


def position_of(storage: StorageReader, named: str, going: Callable[[], bool] = _always, begin: int = 1) -> int:
    """The position of the event that ``named`` means: a position, or an id (``id:…`` for one that is a number), which
    is looked for from ``begin`` on as long as ``going`` says so.

    Raises NotFound (NotYetFound), CorruptLog.
    """
    end = storage.tail().position
    if re.fullmatch(r"[0-9]{1,18}", named, re.ASCII):
        if not 1 <= int(named) <= end:
            raise NotFound(f"the log has no position {named}; it ends with {end}", "pmagent log tail shows its end")
        return int(named)
    wanted = named.removeprefix("id:")
    decision = _DECISION.fullmatch(wanted)
    start = int(decision[1]) if decision else 1  # a decision stands behind what caused it
    return _searched(storage, wanted, max(begin, start if start <= end else 1), going)


def _searched(storage: StorageReader, wanted: str, position: int, going: Callable[[], bool]) -> int:
    """Its position, looked for in the bytes from ``position`` on: only a line that holds the id is read as an event,
    and checked."""
    needle = b'"id":' + msgspec.json.encode(wanted.encode("utf-8", "replace").decode())
    while chunk := storage.read(position, _CHUNK_BYTES):
        at = chunk.find(needle)
        while at >= 0:
            candidate = position + chunk.count(b"\n", 0, at)
            if event_at(storage, candidate).id == wanted:
                return candidate
            at = chunk.find(needle, chunk.index(b"\n", at))
        position += chunk.count(b"\n")
        if not going():
            raise NotYetFound(wanted, position)
    raise NotFound(f"the log has no event {wanted!r}", "give the whole id; pmagent log tail --grep finds it")
