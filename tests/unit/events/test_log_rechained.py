"""Histories that somebody altered and chained anew: what the sums cannot tell is found in what the lines say."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from pmagent.events.errors import CorruptLog
from pmagent.events.event import StoredEvent
from pmagent.events.line import decode_line
from pmagent.events.segments import segment_name
from pmagent.events.verify import verify_log
from tests.support.altered import rechained
from tests.support.cases import each
from tests.support.logs import (
    FOLDER,
    HEAD_PATH,
    all_events,
    head_bytes,
    lines_of,
    open_segments,
    require_intact,
    segment_paths,
    write_log,
)
from tests.support.memory_disk import MemoryDisk

Change = Callable[[StoredEvent], StoredEvent]
CHANGES: dict[str, Change] = {
    "position repeated": lambda e: msgspec.structs.replace(e, position=e.position - 1),
    "position skipped": lambda e: msgspec.structs.replace(e, position=e.position + 1),
    "position negative": lambda e: msgspec.structs.replace(e, position=-e.position),
    "batch back": lambda e: msgspec.structs.replace(e, batch=e.batch - 2),
    "batch skipped": lambda e: msgspec.structs.replace(e, batch=e.batch + 2),
    "time back": lambda e: msgspec.structs.replace(e, time="2026-11-21T00:00:00.000000Z"),
    "time malformed": lambda e: msgspec.structs.replace(e, time="2026-11-21T23:59:59.99999xZ"),
    "time too long": lambda e: msgspec.structs.replace(e, time=e.time + "0"),
    "time empty": lambda e: msgspec.structs.replace(e, time=""),
}


@each("change", CHANGES)
def test_a_re_chained_history_with_a_wrong_position_batch_or_time_is_found(change: str) -> None:
    disk = MemoryDisk()
    write_log(disk, [1, 2, 1, 3, 1], segment_bytes=10_000)
    line = lines_of(disk)[4]
    (segment,) = segment_paths(disk)
    raw, tail = rechained(disk.read(segment), {line.position: CHANGES[change]})
    disk.put(segment, raw)
    disk.put(HEAD_PATH, head_bytes(tail))
    result = verify_log(FOLDER, disk)
    assert result.finding is not None
    assert (result.finding.file, result.finding.offset) == (line.file, line.start)
    assert result.finding.position == result.events + 1 == line.position
    with pytest.raises(CorruptLog) as caught:
        all_events(disk)
    assert (caught.value.file, caught.value.offset, caught.value.position) == (line.file, line.start, line.position)


WITH_DATA = (
    b'{"position":%%d,"batch":%%d,"time":"%%s","id":"%b","kind":"fact","actor":"a","type":"t","correlation":"",'
    b'"causation":0,"data":%b}'
)


@each("at", [2, 5, 9])
@each("text", [
    b'{"position":%d,"batch":%d,"time":"%s","strange":1}', b'{"position":%d,"batch":%d,"time":"%s"]',
    WITH_DATA % (b"\xff", b"{}"), WITH_DATA % (b"a", b"[" * 100_000 + b"]" * 100_000),
])
def test_a_re_chained_line_that_is_no_event_is_found_by_decoding_and_by_readers(at: int, text: bytes) -> None:
    disk = MemoryDisk()
    write_log(disk, [1, 2, 1, 3, 1], segment_bytes=10_000)
    line = lines_of(disk)[at - 1]
    (segment,) = segment_paths(disk)
    event = decode_line(disk.read(segment)[line.start : line.end])
    body = text % (event.position, event.batch, event.time.encode())
    raw, tail = rechained(disk.read(segment), {}, bodies={at: body})
    disk.put(segment, raw)
    disk.put(HEAD_PATH, head_bytes(tail))
    assert verify_log(FOLDER, disk).ok, "the chain alone holds"
    finding = verify_log(FOLDER, disk, decode=True).finding
    assert finding is not None
    assert (finding.offset, finding.position) == (line.start, at)
    assert len(all_events(disk, until=at - 1)) == at - 1
    with pytest.raises(CorruptLog) as caught:
        all_events(disk)
    assert (caught.value.file, caught.value.offset, caught.value.position) == (line.file, line.start, at)


def test_a_log_whose_first_event_is_no_log_created_is_corrupt(disk: MemoryDisk) -> None:
    write_log(disk, [1, 2], segment_bytes=10_000)
    (segment,) = segment_paths(disk)
    raw, tail = rechained(disk.read(segment), {1: lambda e: msgspec.structs.replace(e, type="test.created")})
    disk.put(segment, raw)
    disk.put(HEAD_PATH, head_bytes(tail))
    for opening in (lambda: require_intact(FOLDER, disk), lambda: open_segments(disk)):
        with pytest.raises(CorruptLog) as caught:
            opening()
        assert (caught.value.file, caught.value.offset, caught.value.position) == (segment_name(1), 0, 1)
