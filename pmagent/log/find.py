"""Finding an event by what people have of it: its position, or its id."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from events.errors import NotFound
from events.storage import StorageReader
from pmagent.log.source import line_runs

_DECISION: Final = re.compile(r"([1-9][0-9]{0,17})\.[^.]+\.[0-9]+")


def position_of(storage: StorageReader, named: str) -> int:
    """The position of the event that ``named`` means: a position, or an id (``id:…`` for one that is a number).

    Raises NotFound.
    """
    end = storage.tail().position
    if re.fullmatch(r"[0-9]{1,18}", named):
        if not 1 <= int(named) <= end:
            raise NotFound(f"the log has no position {named}; it ends with {end}", "pmagent log tail shows its end")
        return int(named)
    wanted = named.removeprefix("id:")
    decision = _DECISION.fullmatch(wanted)
    start = int(decision[1]) if decision else 1  # a decision stands behind what caused it
    needle = b'"id":' + msgspec.json.encode(wanted.encode("utf-8", "replace").decode())
    for run, tap in line_runs(storage, start if start <= end else 1):
        if needle in tap.run_bytes(len(run)):
            for event in run:
                if event.id == wanted:
                    return event.position
    raise NotFound(f"the log has no event {named!r}", "give the whole id; pmagent log tail --grep finds it")
