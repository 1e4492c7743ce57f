"""Segments that somebody altered and whose chain, and HEAD, were computed anew: what only positions, batches, times,
decoding and replay can find. Altered logs in memory are in ``tests.support.recorded``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from pmagent.events.event import StoredEvent, Tail
from pmagent.events.head import NAME
from pmagent.events.line import TAIL_BYTES, decode_line
from tests.support.logs import head_bytes

Data = dict[str, Any]


def rechained(
    lines: bytes, changes: Mapping[int, Callable[[StoredEvent], StoredEvent]], bodies: Mapping[int, bytes] | None = None
) -> tuple[bytes, Tail]:
    """``lines`` with the event at each position of ``changes`` changed, or the whole body (closing brace included) of
    those in ``bodies``; and the tail that results."""
    previous = bytes(32)
    result = []
    last = Tail()
    for position, line in enumerate(lines.splitlines(), 1):
        event = decode_line(line)
        body = line[:-TAIL_BYTES]
        if position in changes:
            event = changes[position](event)
            body = msgspec.json.encode(event)[:-TAIL_BYTES]
        if bodies and position in bodies:
            body = bodies[position][:-1]
        previous = sha256(previous + body).digest()
        result.append(body + b',"sum":"%s"}\n' % previous.hex().encode())
        last = Tail(position, event.batch, event.time, previous.hex())
    return b"".join(result), last


def rewrite(folder: Path, type: str, change: Callable[[Data], Data]) -> int:
    """Change the data of the first event of ``type`` in a log of one segment; returns its position."""
    (segment,) = folder.glob("*.jsonl")
    lines = segment.read_bytes()
    events = [decode_line(line) for line in lines.splitlines()]
    position = next(event.position for event in events if event.type == type)

    def changed(event: StoredEvent) -> StoredEvent:
        data = change(msgspec.json.decode(event.data))
        return msgspec.structs.replace(event, data=msgspec.Raw(msgspec.json.encode(data)))

    altered, tail = rechained(lines, {position: changed})
    segment.write_bytes(altered)
    (folder / NAME).write_bytes(head_bytes(tail, msgspec.json.decode(events[0].data)["log_id"]))
    return position
