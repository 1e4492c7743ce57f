"""Reading of a log what holds something that is looked for: the rest is passed by as bytes, unread and unchecked.

What is handed out has been checked, and is linked to the line before it; ``pmagent log verify`` is there for what
nobody looks at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pmagent.events.event import StoredEvent, Tail
from pmagent.events.reader import RUN_BYTES
from pmagent.events.reader import runs as event_runs
from pmagent.events.storage import StorageReader


def stands(storage: StorageReader, tail: Tail) -> bool:
    """Whether the log still holds what ended with ``tail``: a sum stands for everything before it, so what was read up
    to there need not be read again. Raises CorruptLog where no line is where it must be."""
    if tail.position == 0:
        return True
    line = storage.read(tail.position, 1)
    return line.endswith(b',"sum":"%b"}\n' % tail.sum.encode())


def sifted(
    storage: StorageReader, wanted: re.Pattern[bytes], position: int, until: int
) -> Iterator[tuple[Sequence[StoredEvent], int]]:
    """From ``position`` to ``until``: events of stretches in whose bytes ``wanted`` is found (among them others), and
    the last position that is done with them; no events for a stretch that holds nothing. Raises CorruptLog."""
    while position <= until:
        chunk = storage.read(position, RUN_BYTES)
        last = min(position + chunk.count(b"\n") - 1, until)
        if last < position:
            return
        if wanted.search(chunk) is None:
            yield (), last
        else:
            for run in event_runs(storage, position, last):
                yield run, run[-1].position
        position = last + 1
