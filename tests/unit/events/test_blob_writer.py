"""A blob that comes piece by piece: whole under its name, or not there."""

from __future__ import annotations

import errno
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from pmagent.events import blobs as blobs_module
from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.disk import Crashed, SimDisk
from pmagent.replay.simulation.faults import Faults
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.memory_disk import MemoryDisk

PIECES = [b"first ", b"", b"second " * 1000, b"third"]
CONTENT = b"".join(PIECES)
NAME = sha256(CONTENT).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    """On the real disk."""
    return BlobStore(RealDisk(), str(tmp_path / "blobs"))


def written(store: BlobStore, pieces: list[bytes] = PIECES) -> tuple[str, int]:
    """Write ``pieces``."""
    writer = store.writer()
    for piece in pieces:
        writer.append(piece)
    assert writer.size == sum(map(len, pieces))
    return writer.finish()


def files(folder: Path) -> list[str]:
    """Names of the files in ``folder``, at any depth."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_it_is_found_by_its_hash_and_nothing_else_is_left(store: BlobStore, tmp_path: Path) -> None:
    assert written(store) == (NAME, len(CONTENT))
    assert written(store) == (NAME, len(CONTENT)) == (store.put(CONTENT), len(CONTENT))
    assert store.get(NAME) == CONTENT
    assert files(tmp_path) == [NAME]
    empty, size = written(store, [])
    assert (store.get(empty), size) == (b"", 0)


def test_what_is_abandoned_leaves_nothing(store: BlobStore, tmp_path: Path) -> None:
    writer = store.writer()
    writer.append(CONTENT)
    writer.abandon()
    writer.abandon()
    assert files(tmp_path) == []
    finished = store.writer()
    finished.append(CONTENT)
    finished.finish()
    finished.abandon()
    assert files(tmp_path) == [NAME]
    for ended in (writer, finished):
        with pytest.raises(ValueError, match="finished or abandoned"):
            ended.append(b"x")
        with pytest.raises(ValueError, match="finished or abandoned"):
            ended.finish()


def test_writers_side_by_side_do_not_disturb_each_other(store: BlobStore, tmp_path: Path) -> None:
    writers = [store.writer() for _ in range(20)]
    for number, writer in enumerate(writers):
        writer.append(b"the same" if number % 2 else b"%d" % number)
    assert len({writer.finish() for writer in writers}) == 11
    assert len(files(tmp_path)) == 11


@pytest.mark.parametrize("damage", [b"", CONTENT[:-1], b"x" + CONTENT[1:], CONTENT + b"x"])
def test_something_else_under_its_name_is_mended(store: BlobStore, tmp_path: Path, damage: bytes) -> None:
    written(store)
    file = tmp_path / "blobs" / NAME[:2] / NAME
    file.write_bytes(damage)
    with pytest.raises(CorruptLog):
        store.get(NAME)
    written(store)
    assert store.get(NAME) == CONTENT
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere")
    written(store)
    assert not file.is_symlink()
    assert files(tmp_path) == [NAME]


def test_a_blob_has_an_upper_bound(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs_module, "BLOB_BYTES_MAX", 10)
    writer = store.writer()
    writer.append(b"0123456789")
    with pytest.raises(ValueError, match="at most 10 bytes, not 11"):
        writer.append(b"x")
    assert writer.finish()[1] == 10


def test_a_full_disk_is_told_and_the_writer_takes_no_more(disk: MemoryDisk) -> None:
    store = BlobStore(disk, "/blobs")
    writer = store.writer()
    writer.append(b"x" * 50)
    disk.room = 20
    with pytest.raises(OSError, match="No space") as caught:
        writer.append(b"y" * 50)
    assert caught.value.errno == errno.ENOSPC
    disk.room = None
    for more in (lambda: writer.append(b"z"), writer.finish):
        with pytest.raises(ValueError, match="failed"):
            more()
    writer.abandon()
    assert disk.contents == {}
    assert disk.open_files == 0


@each("operation", ["sync", "rename", "sync_folder"])
def test_a_disk_that_fails_at_the_end_is_told_and_no_half_blob_stands_there(operation: str) -> None:
    disk = MemoryDisk()

    def before(name: str, _path: str) -> None:
        if name == operation:
            raise OSError(5, "Input/output error")

    writer = BlobStore(disk, "/blobs").writer()
    writer.append(CONTENT)
    disk.before = before
    with pytest.raises(OSError, match="Input/output"):
        writer.finish()
    with pytest.raises(ValueError, match="failed"):
        writer.finish()
    writer.abandon()
    assert all(disk.read(path) == CONTENT for path in disk.contents if not path.endswith(".tmp"))
    assert not [path for path in disk.contents if path.endswith(".tmp")]
    assert disk.open_files == 0


def test_only_what_is_unfinished_is_cleared(store: BlobStore, tmp_path: Path) -> None:
    kept, _ = written(store)
    store.writer().append(b"of a process that was killed")
    folder = tmp_path / "blobs"
    (folder / kept[:2] / f"{kept}.1.tmp").write_bytes(b"half")
    others = ["notes.tmp", "stream.tmp", f"{kept}.tmp", "stream.1.tmp.txt"]
    for name in others:
        (folder / name).write_bytes(b"somebody's")
    assert store.clear_unfinished() == 2
    assert store.clear_unfinished() == 0
    assert files(folder) == sorted([kept, *others])


class Crash(BaseException):
    """The process ends here."""


@settings(max_examples=examples(300), deadline=None)
@given(
    lives=st.lists(st.tuples(st.integers(0, 14), st.sampled_from(["process", "power", "some kept"])), max_size=5),
    pieces=st.lists(st.binary(max_size=1_500), max_size=4), seed=st.integers(0, 2**32),
)
def test_no_crash_anywhere_leaves_half_a_blob(lives: list[tuple[int, str]], pieces: list[bytes], seed: int) -> None:
    """One process after the other starts, clears up, and writes; what it was told is durable stays."""
    disk, random, acknowledged = MemoryDisk(), Random(seed), False
    name = sha256(b"".join(pieces)).hexdigest()

    def live() -> None:
        nonlocal acknowledged
        store = BlobStore(disk, "/blobs")
        store.clear_unfinished()
        assert not [path for path in disk.contents if path.endswith(".tmp")]
        for path in disk.contents:
            assert store.get(path.rpartition("/")[2]) == b"".join(pieces)
        if acknowledged:
            store.get(name)
        written(store, pieces)
        acknowledged = True

    for operations, kind in lives:
        left = [operations]

        def before(_operation: str, _path: str, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise Crash

        disk.before = before
        try:
            live()
        except Crash:
            event("crashed")
        disk.before = lambda _operation, _path: None
        if kind != "process":
            disk = disk.power_loss((lambda: random.random() < 0.5) if kind == "some kept" else (lambda: False))
    live()
    assert disk.power_loss().read(f"/blobs/{name[:2]}/{name}") == b"".join(pieces)


@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), ends=st.lists(st.integers(0, 600), max_size=4))
def test_the_simulated_disk_takes_it_as_well(seed: int, ends: list[int]) -> None:
    chance = Chance(seed)
    disk = SimDisk(chance, Faults(chance, "world"))
    for end in ends:
        disk.crash_after = end
        store = BlobStore(disk, "/blobs")
        with suppress(Crashed, OSError):
            store.clear_unfinished()
            written(store)
        disk.crash(power=chance.uniform("power") < 0.5)
    disk.watched = False
    store = BlobStore(disk, "/blobs")
    with suppress(NotFound):
        assert store.get(NAME) == CONTENT
    store.clear_unfinished()
    written(store)
    disk.crash(power=True)
    store.clear_unfinished()  # the power may have gone between the old name and the new one
    assert store.get(NAME) == CONTENT
    assert [path for path in disk.files() if path.endswith(".tmp")] == []
