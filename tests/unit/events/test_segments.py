"""The ends of segment files, and which files are segments; finding positions is test_log_follow's."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.events.disk import RealDisk
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import LINE_BYTES_MAX, Tail
from pmagent.events.segments import SegmentReader, first_line, last_lines, line_start, segment_firsts, segment_name
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.logs import FOLDER, HEAD_PATH, LOG_ID, path, segment_paths, write_log
from tests.support.memory_disk import MemoryDisk, MemoryFile


def file_of(data: bytes) -> MemoryFile:
    """A file with this content."""
    disk = MemoryDisk()
    disk.put("/file", data)
    return disk.open("/file")


def test_names_sort_as_positions_do_and_only_they_are_segments(disk: MemoryDisk) -> None:
    firsts = [1, 2, 10, 999, 10**12, 10**19]
    for first in reversed(firsts):
        disk.put(path(first), b"")
    for name in ("HEAD", "1.jsonl", f"{segment_name(5)}.tmp", f"{segment_name(5)}.torn-0-1", f"x{segment_name(5)}"):
        disk.put(f"{FOLDER}/{name}", b"")
    assert segment_firsts(disk, FOLDER) == firsts
    assert segment_firsts(disk, "/none") == []


@each("line, claim", [
    (b'{"position":1,"batch":2,"time', (1, 2)),
    (b'{"position":9223372036854775807,"batch":12,', (2**63 - 1, 12)),
    (b'{"position":0,"batch":2,', None),
    (b'{"position":01,"batch":2,', None),
    (b'{"position":-1,"batch":2,', None),
    (b'{"position": 1,"batch":2,', None),
    (b'{"position":1,"batch":2}', None),
    (b'{"position":' + b"9" * 20 + b',"batch":2,', None),
    (b' {"position":1,"batch":2,', None),
    (b"", None),
    (b"\0" * 64, None),
])
def test_what_a_line_claims_is_read_literally(line: bytes, claim: tuple[int, int] | None) -> None:
    assert line_start(line) == claim


SIZES = st.sampled_from([0, 1, 2, 100, 4095, 4096, 65_534, 65_535, 65_536, 65_537, 131_072, LINE_BYTES_MAX - 1])


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(SIZES, max_size=4), SIZES | st.none())
def test_first_and_last_lines_are_found_whatever_their_sizes(sizes: list[int], torn: int | None) -> None:
    lines = [b"%x" % number * size for number, size in enumerate(sizes, 1)]
    file = file_of(b"".join(line + b"\n" for line in lines) + b"t" * (torn or 0))
    assert last_lines(file) == ((lines[-2] if len(lines) > 1 else b""), (lines[-1] if lines else b""))
    assert first_line(file) == (lines[0] + b"\n" if lines else b"")


def test_a_file_without_any_line_end_is_not_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    file = file_of(bytes(8 * LINE_BYTES_MAX))
    asked = 0
    read_at = file.read_at

    def counting(offset: int, size: int) -> bytes:
        nonlocal asked
        asked += size
        return read_at(offset, size)

    monkeypatch.setattr(file, "read_at", counting)
    assert last_lines(file) == (b"", b"")
    assert first_line(file) == b""
    assert asked < 6 * LINE_BYTES_MAX


def test_a_folder_without_head_is_no_log() -> None:
    with pytest.raises(NotFound, match="no log"):
        SegmentReader(MemoryDisk(), FOLDER)


def test_a_head_without_a_whole_slot_says_nothing(disk: MemoryDisk) -> None:
    write_log(disk, [1, 2])
    reader = SegmentReader(disk, FOLDER)
    assert reader.log_id() == LOG_ID
    disk.put(HEAD_PATH, bytes(1024))
    for ask in (reader.tail, reader.log_id, lambda: reader.read(1)):
        with pytest.raises(CorruptLog, match="both slots") as caught:
            ask()
        assert caught.value.file == "HEAD"
    reader.close()


def test_few_files_are_open_at_once_and_none_after_closing(tmp_path: Path, disk: MemoryDisk) -> None:
    tail = write_log(disk, [3] * 20, segment_bytes=1)[-1]
    assert len(segment_paths(disk)) > 15
    reader = SegmentReader(disk, FOLDER)
    most = 0
    for position in [*range(1, tail.position + 1), 1, tail.position, 1]:
        assert reader.read(position, 1).count(b"\n") == 1
        most = max(most, disk.open_files)
    assert most <= 5, "HEAD and four segments"
    reader.close()
    reader.close()
    assert disk.open_files == 0
    with pytest.raises(NotFound):
        SegmentReader(RealDisk(), str(tmp_path / "none"))


def test_reading_asks_no_less_than_it_gives_and_no_more_than_is_durable(disk: MemoryDisk) -> None:
    (*_, before, tail) = write_log(disk, [2, 2, 2], segment_bytes=10_000)
    reader = SegmentReader(disk, FOLDER)
    whole = b"".join(disk.read(segment) for segment in segment_paths(disk))
    assert reader.read(1) == whole
    disk.put(path(1), whole + b'{"position":%d,"batch":9,' % (tail.position + 1))
    assert reader.read(1) == whole
    assert reader.read(tail.position + 1) == b""
    assert reader.read(before.position, 1).count(b"\n") == 1
    assert reader.tail() == tail != Tail()
    reader.close()
