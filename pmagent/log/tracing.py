"""Causes and consequences. Two passes: up from cause to cause by position, then once forward; memory stays bounded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from pmagent.events.errors import NotFound
from pmagent.events.event import StoredEvent
from pmagent.events.reader import RUN_BYTES, event_at, runs
from pmagent.events.storage import StorageReader

_FEW: Final = 8
_CAUSATION: Final = re.compile(rb'"causation":([0-9]{1,19}),')

CAUSES_MAX: Final = 1000
"""So many causes are followed upward."""


class Node(msgspec.Struct, frozen=True):
    """An event in the tree: ``depth`` 0 for the root, ``cause`` its cause's position (0: none)."""

    event: StoredEvent
    depth: int
    cause: int


class Tree(msgspec.Struct, frozen=True):
    """The path of ``causes`` from the root to the event itself (last), and its consequences in log order.

    ``more`` counts consequences beyond the limit; ``cut`` says that the root was not reached. ``looked``: consequences
    were looked for up to there, for there was no more time; 0: to the end.
    """

    causes: list[StoredEvent]
    consequences: list[Node]
    more: int
    cut: bool
    looked: int = 0


Keep = Callable[[StoredEvent], StoredEvent]


def _same(event: StoredEvent) -> StoredEvent:
    return event


def causes(storage: StorageReader, event: StoredEvent, keep: Keep = _same) -> tuple[list[StoredEvent], bool]:
    """From the root down to ``event`` (included), and whether the root was not reached within ``CAUSES_MAX``. Of the
    causes is kept what ``keep`` makes of them.

    Raises CorruptLog, NotFound.
    """
    path = [event]
    while (cause := path[-1].causation) and len(path) <= CAUSES_MAX:
        if cause >= path[-1].position:
            raise NotFound(f"event {path[-1].position} says that {cause}, which comes after it, caused it")
        path.append(keep(event_at(storage, cause)))
    return path[::-1], bool(path[-1].causation)


def consequences(storage: StorageReader, event: StoredEvent, limit: int, depth: int) -> tuple[list[Node], int]:
    """The events that ``event`` caused, directly or not, down to ``depth`` levels; at most ``limit``, and how
    many more there are.

    Consequences of events beyond the limit are not counted. Raises CorruptLog.
    """
    found, more, _ = _consequences(storage, event, limit, depth, None, _same)
    return found, more


def _consequences(
    storage: StorageReader, event: StoredEvent, limit: int, depth: int, going: Callable[[], bool] | None, keep: Keep
) -> tuple[list[Node], int, int]:
    """The same as long as ``going`` says so, and up to which position it did (0: to the end). Without ``going`` every
    line is checked, also where no consequence can be."""
    levels = {event.position: 0}
    found: list[Node] = []
    more, position = 0, event.position + 1
    while chunk := storage.read(position, RUN_BYTES):
        last = position + chunk.count(b"\n") - 1
        mentioned = _mentions(chunk, levels)
        for run in runs(storage, position, last) if mentioned or going is None else ():
            for later in run if mentioned else ():
                level = levels.get(later.causation)
                if level is None or level >= depth:
                    continue
                if len(found) >= limit:
                    more += 1
                    continue
                levels[later.position] = level + 1
                found.append(Node(keep(later), level + 1, later.causation))
        position = last + 1
        if going is not None and not going() and position <= storage.tail().position:
            return found, more, last
    return found, more, 0


def _mentions(lines: bytes, levels: dict[int, int]) -> bool:
    """Whether these lines can hold a consequence at all. Causes are looked for in the bytes, which is much faster than
    checking and decoding all of them."""
    if len(levels) > _FEW:
        return any(int(cause) in levels for cause in set(_CAUSATION.findall(lines)))
    return any(b'"causation":%d,' % position in lines for position in levels)


def tree(
    storage: StorageReader, position: int, limit: int, depth: int, going: Callable[[], bool] | None = None,
    keep: Keep = _same,
) -> Tree:  # fmt: skip
    """The tree around ``position``. With ``going`` consequences are looked for as long as that says so, and only the
    lines that can be some are checked. Of causes and consequences is kept what ``keep`` makes of them. Raises NotFound,
    CorruptLog."""
    event = event_at(storage, position)
    path, cut = causes(storage, event, keep)
    found, more, looked = _consequences(storage, event, limit, depth, going, keep)
    return Tree(path, found, more, cut, looked)


def drawn(nodes: list[Node], root: int) -> Iterator[tuple[str, StoredEvent]]:
    """The nodes below ``root`` in the order of a tree, each with the lines that are drawn before it."""
    below: dict[int, list[StoredEvent]] = {}
    for node in nodes:
        below.setdefault(node.cause, []).append(node.event)
    stack: list[tuple[str, str, StoredEvent]] = _branches("", below.get(root, []))
    while stack:
        prefix, deeper, event = stack.pop()
        yield prefix, event
        stack += _branches(deeper, below.get(event.position, []))


def _branches(indent: str, events: list[StoredEvent]) -> list[tuple[str, str, StoredEvent]]:
    """Children as stack entries, the first one on top."""
    made = [(f"{indent}├─ ", f"{indent}│  ", event) for event in events[:-1]]
    made += [(f"{indent}└─ ", f"{indent}   ", event) for event in events[-1:]]
    return made[::-1]
