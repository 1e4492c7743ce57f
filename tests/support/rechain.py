"""Somebody alters a log and computes the chain anew: what only positions, batches, times and decoding can find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256

import msgspec

from events.event import StoredEvent, Tail
from events.line import TAIL_BYTES, decode_line


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
