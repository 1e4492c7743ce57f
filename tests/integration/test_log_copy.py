"""A log is copied between folders and databases, byte for byte, whatever cuts the copying off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest

from pmagent.actors.known import named_blobs
from pmagent.events.copying import NoCopy, copy_log
from pmagent.events.errors import CorruptLog, LogMoved, NotFound, PmagentError
from pmagent.events.event import Draft, Tail
from pmagent.events.evidence import log_in
from pmagent.events.postgres.store import PostgresLog
from pmagent.events.store import LogStore
from tests.support.logs import BatchWriter, draft
from tests.support.postgres import Server, one_server

SEGMENT_BYTES = 700
BATCHES = (1, 3, 1, 2, 5, 1)

Place: TypeAlias = Callable[[], LogStore]


class CutOff(Exception):
    """The copying ends here."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One server."""
    with one_server() as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    """A log in a folder of its own each time, in segments that roll early."""
    numbers = count()
    return lambda: log_in(tmp_path / str(next(numbers)) / "log", SEGMENT_BYTES)


@pytest.fixture
def database(server: Server, tmp_path: Path) -> Place:
    """A log in PostgreSQL each time."""
    numbers = count()
    return lambda: PostgresLog(server.new_log(), tmp_path / f"pg-{next(numbers)}" / "blobs", replicated=False)


def fill(store: LogStore, batches: tuple[int, ...] = BATCHES) -> None:
    """Write a log; an event of each batch names a blob."""
    blobs = store.blobs()
    with store.lease("tests") as lease, closing(lease.open()) as storage:
        writer = BatchWriter(storage)
        if not storage.tail().position:
            writer.create(storage.log_id())
        for count_ in batches:
            start = storage.tail().position
            content = b"blob of %d" % start
            name = {"sha256": blobs.put(content), "size": len(content), "media_type": "text/plain"}
            named = Draft("test.kept", None, msgspec.json.encode({"content": name}), f"kept-{start}", "source")
            writer.write([named, *(draft(start + n, 100) for n in range(count_))])


def lines_of(store: LogStore) -> bytes:
    """All lines."""
    with closing(store.reader()) as reader:
        whole = b""
        while chunk := reader.read(whole.count(b"\n") + 1):
            whole += chunk
        return whole


def files_of(store: LogStore) -> dict[str, bytes]:
    """The segments of a log in a folder."""
    return {path.name: path.read_bytes() for path in sorted(Path(store.place).glob("*.jsonl"))}


def test_through_a_database_and_back_every_segment_is_the_same(folder: Place, database: Place) -> None:
    first, second, third = folder(), database(), folder()
    fill(first)
    there = copy_log(first, second, named_blobs())
    back = copy_log(second, third, named_blobs())
    assert files_of(third) == files_of(first)
    assert len(files_of(first)) > 5
    assert there == back
    assert there.bytes == len(lines_of(first)) == len(lines_of(second))
    assert lines_of(second) == lines_of(third)
    names = {path.name for path in (Path(first.place).parent / "blobs").glob("??/*")}
    assert len(names) == len(BATCHES)
    for store in (second, third):
        for name in names:
            assert store.blobs().get(name) == first.blobs().get(name)
    fill(third, (1,))
    assert third.verify(decode=True).ok


@pytest.mark.parametrize(
    "ways", ["folder to database", "database to folder", "folder to folder", "database to database"]
)
def test_a_copy_that_is_cut_off_at_any_batch_goes_on(ways: str, folder: Place, database: Place) -> None:
    makes = {"folder": folder, "database": database}
    given, _, wanted = ways.split(" ")
    source, destination = makes[given](), makes[wanted]()
    fill(source)
    ends: list[int] = []

    def cut(at: int, _end: int) -> None:
        ends.append(at)
        raise CutOff

    before = lines_of(source)
    for _ in range(len(BATCHES)):
        with pytest.raises(CutOff):
            copy_log(source, destination, named_blobs(), progress=cut)
        with source.lease("tests") as lease:  # it is still open
            lease.open().close()
        assert before.startswith(lines_of(destination))
    assert ends == sorted(set(ends))

    def refused() -> None:
        raise CutOff

    with pytest.raises(CutOff):
        copy_log(source, destination, named_blobs(), moving=refused)
    with source.lease("tests"):
        pass
    found = copy_log(source, destination, named_blobs())
    assert found.events == 0
    assert lines_of(destination) == before == lines_of(source)


@pytest.mark.parametrize("place", ["folder", "database"])
def test_a_log_that_was_moved_is_read_and_never_written(place: str, folder: Place, database: Place) -> None:
    source, destination = {"folder": folder, "database": database}[place](), folder()
    fill(source)
    whole = lines_of(source)
    copy_log(source, destination, named_blobs())
    for _ in range(2):
        with pytest.raises(LogMoved) as caught, source.lease("daemon"):
            pass
        assert destination.place in caught.value.message
    with pytest.raises(LogMoved):
        copy_log(source, folder(), named_blobs())
    assert lines_of(source) == whole
    assert source.verify().ok
    assert destination.place in source.stat().trouble
    with destination.lease("daemon"):
        pass


def test_a_backup_leaves_its_source_open_while_it_is_written(folder: Place, database: Place) -> None:
    for source, destination in ((folder(), database()), (database(), folder())):
        fill(source)
        with source.lease("daemon") as lease, closing(lease.open()) as storage:
            writer = BatchWriter(storage)
            writer.write([draft(1000)])
            storage.settle()
            end = writer.acknowledged[-1]
            assert copy_log(source, destination, named_blobs(), backup=True).tail == end
            writer.write([draft(1001)])
            storage.settle()
            assert copy_log(source, destination, named_blobs(), backup=True).events == 1, "the next one goes on"
        assert lines_of(destination) == lines_of(source)


def test_what_is_no_beginning_of_the_log_is_not_written(folder: Place, database: Place) -> None:
    source, other, newer = folder(), database(), database()
    fill(source)
    fill(other)
    with pytest.raises(NoCopy, match="another log"):
        copy_log(source, other, named_blobs())
    copy_log(source, newer, named_blobs(), backup=True)
    fill(newer, (1,))
    with pytest.raises(NoCopy, match="beyond its source"):
        copy_log(source, newer, named_blobs())
    fill(source, (2,))
    fill(source, (2,))
    with pytest.raises(NoCopy, match="parted"):
        copy_log(source, newer, named_blobs())
    with source.lease("tests"):
        pass
    with pytest.raises(NotFound):
        copy_log(folder(), database(), named_blobs())


def test_a_damaged_source_is_not_copied(folder: Place, database: Place) -> None:
    source, destination = folder(), database()
    fill(source)
    path = sorted(Path(source.place).glob("*.jsonl"))[2]
    path.chmod(0o600)
    raw = bytearray(path.read_bytes())
    raw[60] ^= 1
    path.write_bytes(raw)
    with pytest.raises((CorruptLog, PmagentError)):
        copy_log(source, destination, named_blobs(), backup=True)
    assert Tail().position < destination.verify().events < source.stat().parts[0].last
