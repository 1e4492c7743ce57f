"""Somebody else changes the log's files under its writer: nothing is acknowledged after that."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pmagent.events.disk import RealDisk
from pmagent.events.errors import BadEvent, ForeignChange, LogLocked, NotFound, OutcomeUnknown, PmagentError, TailMoved
from pmagent.events.event import Event, Tail
from pmagent.events.line import seal
from pmagent.events.lock import WriterLock, is_locked
from pmagent.events.reader import Follower, Reader
from pmagent.events.segment_store import SegmentStorage
from pmagent.events.segments import SegmentReader, segment_name
from pmagent.events.writer import Writer
from tests.support.cases import each
from tests.support.logs import LOG_ID, BatchWriter, draft, moment, open_segments, write_log
from tests.support.memory_disk import MemoryDisk
from tests.support.one_writer import open_log

HEAD = "HEAD"
FIRST = segment_name(1)


def _replaced(path: Path) -> None:
    copy = path.with_name("copy")
    shutil.copyfile(path, copy)
    copy.replace(path)


def _moved_into_a_new_folder(folder: Path) -> None:
    other = folder.rename(folder.with_name("other"))
    folder.mkdir()
    for file in other.iterdir():
        file.rename(folder / file.name)


def _foreign_append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


CHANGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "folder removed": ("", shutil.rmtree),
    "folder moved": ("", lambda folder: folder.rename(folder.with_name("moved"))),
    "folder copied and replaced": ("", lambda folder: shutil.copytree(folder.rename(folder.with_name("m")), folder)),
    "files moved into a new folder": ("", _moved_into_a_new_folder),
    "HEAD removed": (HEAD, lambda folder: (folder / HEAD).unlink()),
    "HEAD replaced": (HEAD, lambda folder: _replaced(folder / HEAD)),
    "HEAD extended": (HEAD, lambda folder: _foreign_append(folder / HEAD)),
    "HEAD linked": (HEAD, lambda folder: os.link(folder / HEAD, folder / "link")),
    "segment removed": (FIRST, lambda folder: (folder / FIRST).unlink()),
    "segment replaced": (FIRST, lambda folder: _replaced(folder / FIRST)),
    "segment extended": (FIRST, lambda folder: _foreign_append(folder / FIRST)),
    "segment cut": (FIRST, lambda folder: os.truncate(folder / FIRST, 10)),
    "segment linked": (FIRST, lambda folder: os.link(folder / FIRST, folder.parent / "link")),
    "segment a link": (FIRST, lambda folder: (folder / FIRST).symlink_to((folder / FIRST).rename(folder / "x"))),
}


@pytest.fixture
def writer(tmp_path: Path) -> BatchWriter:
    """See ``begun``."""
    return begun(tmp_path)


def begun(tmp_path: Path) -> BatchWriter:
    """A writer that has written a little into ``tmp_path/log``."""
    made = BatchWriter(open_segments(RealDisk(), 100_000, folder=str(tmp_path / "log")))
    made.create(LOG_ID)
    made.write([draft(2)])
    return made


def _age(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no name in the folder have changed for a long time: no later change has the same time."""
    monkeypatch.setattr("pmagent.events.disk.time.time_ns", lambda: time.clock_gettime_ns(time.CLOCK_REALTIME) + 10**13)
    clock = folder.with_name("clock")
    clock.touch()
    while clock.stat().st_ctime_ns <= folder.stat().st_ctime_ns:
        clock.touch()
    clock.unlink()


@each("change", CHANGES)
@each("when", ["just made", "long there", "idle"])
def test_nothing_is_acknowledged_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, when: str) -> None:
    writer = begun(tmp_path)
    file, act = CHANGES[change]
    if when == "long there":
        _age(tmp_path / "log", monkeypatch)
        writer.write([draft(3)])
        looks: list[str] = []
        monkeypatch.setattr(SegmentStorage, "_look_at_names", lambda _: looks.append("by name"))
        writer.write([draft(4)])
        assert looks == [], "as long as no name has changed, the open files tell"
        monkeypatch.undo()
    act(tmp_path / "log")
    before = sorted((path, path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file())
    with pytest.raises(ForeignChange) as caught:
        writer.committer.settle() if when == "idle" else writer.write([draft(5)])
    assert caught.value.exit_code == 70
    assert caught.value.path == str(tmp_path / "log" / file if file else tmp_path / "log")
    assert sorted((path, path.read_bytes()) for path in tmp_path.rglob("*") if path.is_file()) == before
    with pytest.raises(OutcomeUnknown):
        writer.storage.settle()
    writer.storage.close()


def test_what_comes_back_does_not_mend_the_writer(tmp_path: Path, writer: BatchWriter) -> None:
    (tmp_path / "log").rename(tmp_path / "moved")
    with pytest.raises(ForeignChange):
        writer.committer.settle()
    (tmp_path / "moved").rename(tmp_path / "log")
    with pytest.raises(ForeignChange):
        writer.write([draft(3)])
    writer.storage.close()
    again = BatchWriter(open_segments(RealDisk(), 100_000, folder=str(tmp_path / "log")))
    assert again.storage.tail() == writer.acknowledged[-1]
    again.storage.close()


def test_a_fact_that_is_sent_again_is_no_acknowledgement_either(tmp_path: Path, writer: BatchWriter) -> None:
    shutil.rmtree(tmp_path / "log")
    writer.committer.submit(())
    with pytest.raises(ForeignChange):
        writer.committer.commit()
    writer.storage.close()


def test_files_that_roll_stay_known(tmp_path: Path) -> None:
    writer = BatchWriter(open_segments(RealDisk(), 400, folder=str(tmp_path / "log")))
    writer.create(LOG_ID)
    for number in range(2, 9):
        writer.write([draft(number, 100)])
    (newest,) = sorted((tmp_path / "log").glob("*.jsonl"))[-1:]
    newest.unlink()
    with pytest.raises(ForeignChange) as caught:
        writer.write([draft(9)])
    assert caught.value.path == str(newest)
    writer.storage.close()


def test_an_idle_writer_notices_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pmagent.events.writer.LOOK_SECONDS", 0.01)

    async def notice() -> PmagentError:
        failed: asyncio.Future[PmagentError] = asyncio.get_running_loop().create_future()
        storage = open_segments(RealDisk(), 100_000, folder=str(tmp_path / "log"))
        writer = Writer(storage, lambda _: None, failed.set_result)
        shutil.rmtree(tmp_path / "log")
        found = await asyncio.wait_for(failed, 60)
        await writer.stop()
        storage.close()
        return found

    assert type(asyncio.run(notice())) is ForeignChange


@each("change", ["folder removed", "folder moved", "HEAD removed", "HEAD replaced"])
def test_who_reads_beside_it_is_told(tmp_path: Path, change: str) -> None:
    writer = begun(tmp_path)
    reader = SegmentReader(RealDisk(), str(tmp_path / "log"))
    follower = Follower(reader)
    while follower.poll() is not None:
        pass
    CHANGES[change][1](tmp_path / "log")
    with pytest.raises(NotFound):
        follower.poll()
    with pytest.raises(NotFound):
        reader.read(1)
    reader.close()
    with pytest.raises(ForeignChange):
        writer.storage.close()


# --- one writer ------------------------------------------------------------------------------------------------------


async def _append(folder: Path, number: int) -> None:
    async with open_log(folder) as log:
        await log.append(draft(number))


@pytest.mark.parametrize("act", [
    lambda lock: lock.unlink(), lambda lock: (lock.unlink(), lock.touch()), lambda lock: lock.rename(f"{lock}.old"),
], ids=["removed", "replaced", "moved"])  # fmt: skip
def test_without_its_file_a_lock_keeps_a_second_writer_out(tmp_path: Path, act: Callable[[Path], object]) -> None:
    folder = tmp_path / "log"

    async def second() -> None:
        async with open_log(folder) as log:
            act(tmp_path / "LOCK")
            assert is_locked(folder)
            with pytest.raises(LogLocked):
                await _append(folder, 1)
            await log.append(draft(2))

    asyncio.run(second())
    asyncio.run(_append(folder, 3))
    assert not is_locked(folder)


def test_an_earlier_release_that_locks_the_file_alone_keeps_a_writer_out(tmp_path: Path) -> None:
    earlier = WriterLock(tmp_path / "LOCK", "earlier")
    with pytest.raises(LogLocked, match="earlier"):
        asyncio.run(_append(tmp_path / "log", 1))
    earlier.release()
    asyncio.run(_append(tmp_path / "log", 1))


def test_a_log_in_a_new_folder_is_another_one_and_the_first_writer_ends(tmp_path: Path) -> None:
    folder = tmp_path / "log"

    async def both() -> None:
        async with open_log(folder) as log:
            await log.append(draft(1))
            folder.rename(tmp_path / "moved")
            (tmp_path / "LOCK").unlink()
            await _append(folder, 1)
            await log.append(draft(2))

    with pytest.raises(ForeignChange):
        asyncio.run(both())
    first, second = (SegmentReader(RealDisk(), str(tmp_path / name)) for name in ("moved", "log"))
    assert (first.tail().position, second.tail().position) == (2, 2)
    assert first.log_id() != second.log_id()


# --- what follows ----------------------------------------------------------------------------------------------------


def test_two_committers_of_one_storage_find_each_other(disk: MemoryDisk) -> None:
    first = BatchWriter(open_segments(disk))
    second = BatchWriter(first.storage)
    first.create(LOG_ID)
    with pytest.raises(TailMoved):
        second.write([draft(1)])
    assert first.write([draft(2)]).position == 2


def test_a_gap_cannot_be_written(disk: MemoryDisk) -> None:
    writer = BatchWriter(open_segments(disk))
    writer.create(LOG_ID)
    writer.sequencer.position += 1
    with pytest.raises(BadEvent):
        writer.write([draft(3)])
    writer.storage.close()
    assert open_segments(disk).tail() == writer.acknowledged[-1]


def test_a_line_that_says_its_position_twice_is_refused_by_readers(disk: MemoryDisk) -> None:
    tails = write_log(disk, [1], 100_000)
    made = draft(3)
    event = Event(3, moment(3), made.id, "fact", "source", made.type, "", 0, None, b'{},"position":9')
    (line,), (sum_,) = seal([event], tails[-1].batch + 1, tails[-1])
    storage = SegmentStorage(disk, "/log", LOG_ID)
    storage.append_batch(tails[-1], [line], Tail(3, tails[-1].batch + 1, moment(3), sum_))
    with pytest.raises(PmagentError) as caught:
        Reader(storage, 3).next_run()
    assert caught.value.exit_code == 4
