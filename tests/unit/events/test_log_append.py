"""Appending: each fact once, everybody who waits hears the outcome, one writer at a time."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from pmagent.events.disk import RealDisk
from pmagent.events.errors import BadEvent, CorruptLog, LogLocked, OutcomeUnknown
from pmagent.events.event import DATA_BYTES_MAX, Draft, Event
from pmagent.events.head import NAME as HEAD_NAME
from pmagent.events.lock import WriterLock, is_locked
from pmagent.events.reader import events
from pmagent.events.segments import SegmentReader
from pmagent.events.sequencer import Sequencer
from pmagent.events.verify import verify_log
from tests.support.cases import each
from tests.support.logs import FOLDER, LOG_ID, BatchWriter, all_events, draft, open_segments
from tests.support.memory_disk import MemoryDisk
from tests.support.one_writer import Log, open_log

ROOT = Path(__file__).resolve().parents[3]


def ids(folder: Path) -> list[str]:
    """The ids of all events."""
    with closing(SegmentReader(RealDisk(), str(folder))) as reader:
        return [event.id for event in events(reader)]


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


def run(folder: Path, work: Callable[[Log], Awaitable[None]]) -> None:
    """Do ``work`` with the log in ``folder``."""

    async def main() -> None:
        async with open_log(folder) as log:
            await work(log)

    asyncio.run(main())


def test_appending_a_fact_again_gives_the_one_that_stands(tmp_path: Path) -> None:
    folder = tmp_path / ".pmagent" / "log"
    found: list[Event] = []

    async def twice(log: Log) -> None:
        found.extend([await log.append(draft(1)), await log.append(draft(2)), await log.append(draft(1))])

    run(folder, twice)
    run(folder, twice)
    assert [event.position for event in found] == [2, 3, 2, 2, 3, 2]
    assert len({(event.position, event.time, event.raw) for event in found}) == 2
    assert ids(folder)[1:] == ["note-1", "note-2"]


def test_many_who_append_the_same_fact_at_once_get_one_event(tmp_path: Path) -> None:
    async def at_once(log: Log) -> None:
        found = await asyncio.gather(*(log.append(draft(n % 3)) for n in range(60)))
        assert {event.position for event in found} == {2, 3, 4}

    run(tmp_path / "log", at_once)
    assert len(ids(tmp_path / "log")) == 4


def test_the_second_who_appends_hears_the_outcome_though_the_first_is_cancelled(tmp_path: Path) -> None:
    async def cancelled(log: Log) -> None:
        first = asyncio.create_task(log.append(draft(1)))
        second = asyncio.create_task(log.append(draft(1)))
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).id == "note-1"
        with pytest.raises(asyncio.CancelledError):
            await first

    run(tmp_path / "log", cancelled)
    assert ids(tmp_path / "log")[1:] == ["note-1"]


def test_decisions_are_never_taken_for_each_other(tmp_path: Path) -> None:
    async def same_id(log: Log) -> None:
        made = Draft("test.decided", None, b"{}", "7.a.0", "a", kind="decision")
        found = await asyncio.gather(log.append(made), log.append(made))
        assert [event.position for event in found] == [2, 3]

    run(tmp_path / "log", same_id)


BAD = {
    "an empty id": Draft("t", None, b"{}", "", "a"),
    "a long id": Draft("t", None, b"{}", "i" * 513, "a"),
    "an id that is long when escaped": Draft("t", None, b"{}", "\x01" * 100, "a"),
    "an id that is no text": Draft("t", None, b"{}", "\ud800", "a"),
    "too much data": Draft("t", None, b'"%s"' % (b"x" * DATA_BYTES_MAX), "i", "a"),
    "data on two lines": Draft("t", None, b'{\n"a":1}', "i", "a"),
    "no data": Draft("t", None, b"", "i", "a"),
}


@each("what", BAD)
def test_a_bad_event_is_refused_and_takes_no_place(what: str, tmp_path: Path) -> None:
    async def bad_then_good(log: Log) -> None:
        with pytest.raises(BadEvent):
            await log.append(BAD[what])
        assert (await log.append(draft(1))).position == 2

    run(tmp_path / "log", bad_then_good)
    assert verify_log(str(tmp_path / "log"), decode=True).ok


def failing(disk: MemoryDisk, operation: str, path: str = "") -> list[str]:
    """From now on ``operation`` fails (on ``path``); what is tried afterwards is listed."""
    tried: list[str] = []

    def before(name: str, where: str) -> None:
        tried.append(name)
        if name == operation and path in where:
            raise OSError(5, "Input/output error")

    disk.before = before
    return tried


@each("operation, path", [("append", ""), ("sync", ".jsonl"), ("write_at", HEAD_NAME)])
async def test_a_failed_write_poisons_the_log_and_all_who_wait_hear_it(operation: str, path: str) -> None:
    disk = MemoryDisk()
    writer = BatchWriter(storage := open_segments(disk, 1 << 20))
    writer.create(LOG_ID)
    log = Log(storage, Sequencer(storage.tail()))
    await log.append(draft(1))
    tried = failing(disk, operation, path)
    waiting = [asyncio.create_task(log.append(draft(n))) for n in (2, 3, 4, 2)]
    heard = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(outcome, OutcomeUnknown) for outcome in heard)
    assert tried.count(operation) == 1, "nothing is tried again"
    count = len(tried)
    disk.before = lambda name, _where: tried.append(name)
    for number in (1, 2, 5):
        with pytest.raises(OutcomeUnknown):
            await log.append(draft(number))
    with pytest.raises(OutcomeUnknown):
        await log.aclose()
    assert len(tried) == count, "and nothing more is written, not even HEAD"
    assert disk.open_files == 0
    again = open_segments(disk, 1 << 20)
    assert again.tail().position >= 2
    again.close()
    assert [event.id for event in all_events(disk)][:2] == [f"log.created:{LOG_ID}", "note-1"]
    assert verify_log(FOLDER, disk).ok


def test_a_failed_sync_of_head_on_idle_poisons_too(disk: MemoryDisk) -> None:
    writer = BatchWriter(storage := open_segments(disk))
    writer.create(LOG_ID)
    failing(disk, "sync", HEAD_NAME)
    with pytest.raises(OutcomeUnknown):
        storage.settle()
    with pytest.raises(OutcomeUnknown):
        writer.write([draft(1)])
    disk.before = lambda _name, _where: None
    storage.close()
    assert disk.open_files == 0


def test_a_second_writer_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    async def second(_log: Log) -> None:
        with pytest.raises(LogLocked, match=f"pid {os.getpid()}") as caught:
            async with open_log(tmp_path / "log"):
                pass
        assert caught.value.exit_code == 1
        assert is_locked(tmp_path / "LOCK")

    run(tmp_path / "log", second)
    assert not is_locked(tmp_path / "LOCK")
    assert not is_locked(tmp_path / "none")


def test_somebody_who_looks_at_the_lock_keeps_no_writer_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "LOCK"
    path.touch()
    looking = os.open(path, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr("pmagent.events.lock.time.sleep", lambda _seconds: fcntl.flock(looking, fcntl.LOCK_UN))
    WriterLock(path, "me").release()
    os.close(looking)


HOLDER = """
import sys, time
from pathlib import Path
from pmagent.events.lock import WriterLock
lock = WriterLock(Path(sys.argv[1]), "holder")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_gone_with_its_process_however_it_ended_and_children_do_not_hold_it(tmp_path: Path) -> None:
    path = tmp_path / "LOCK"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(LogLocked, match="holder"):
            WriterLock(path, "me")
        holder.send_signal(signal.SIGKILL)
    lock = WriterLock(path, "me")
    lasting = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(lasting, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False) as child:
        assert child.stdout is not None
        child.stdout.readline()
        lock.release()
        assert not is_locked(path)
        child.communicate(b"\n")
    assert path.read_text() == "me\n"


def test_an_opening_that_fails_leaves_neither_lock_nor_open_file(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    asyncio.run(_append_one(folder))
    segment = next(folder.glob("*.jsonl"))
    segment.write_bytes(segment.read_bytes().replace(b"note-1", b"note-2"))
    before = descriptors()
    for _ in range(3):
        with pytest.raises(CorruptLog):
            asyncio.run(_append_one(folder))
    assert descriptors() == before
    assert not is_locked(tmp_path / "LOCK")


async def _append_one(folder: Path) -> None:
    async with open_log(folder) as log:
        await log.append(draft(1))
