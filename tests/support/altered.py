"""A log on the real disk in which somebody altered a decision and computed the chain, and HEAD, anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from events.event import StoredEvent
from events.head import NAME
from events.line import decode_line
from tests.support.logs import head_bytes
from tests.support.rechain import rechained

Data = dict[str, Any]


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
