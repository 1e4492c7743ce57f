"""The blob store: durable before it is named, checked at each reading, mended where it can be."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from pmagent.actors.known import blob_check
from pmagent.events.blobs import BlobStore, blob_file
from pmagent.events.disk import RealDisk
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.event import Draft
from pmagent.events.named_blobs import FINDINGS_MAX
from pmagent.events.storage import BLOB_BYTES_MAX
from pmagent.events.store import Finding
from pmagent.events.verify import verify_log
from tests.support.cases import each
from tests.support.logs import FOLDER, LOG_ID, BatchWriter, open_segments
from tests.support.memory_disk import MemoryDisk

CONTENT = b"content" * 1000
NAME = sha256(CONTENT).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    """On the real disk."""
    return BlobStore(RealDisk(), str(tmp_path / "blobs"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the blob stands."""
    return tmp_path / "blobs" / NAME[:2] / NAME


class _Counting(RealDisk):
    synced = 0

    def sync_folder(self, path: str) -> None:
        self.synced += 1
        super().sync_folder(path)


def test_a_blob_that_this_store_has_made_durable_is_not_synced_again(tmp_path: Path) -> None:
    disk = _Counting()
    store = BlobStore(disk, str(tmp_path / "blobs"))
    store.put(CONTENT)
    before = disk.synced
    assert store.put(CONTENT) == NAME
    assert disk.synced == before
    BlobStore(disk, str(tmp_path / "blobs")).put(CONTENT)
    assert disk.synced > before, "who put it there may have crashed before it was durable"


def test_a_blob_that_was_removed_is_stored_again(store: BlobStore, file: Path) -> None:
    store.put(CONTENT)
    file.unlink()
    assert store.put(CONTENT) == NAME
    assert store.get(NAME) == CONTENT


def test_content_is_found_by_its_hash(store: BlobStore, file: Path) -> None:
    assert store.put(CONTENT) == store.put(CONTENT) == NAME
    assert store.get(NAME) == CONTENT
    assert [path.name for path in file.parent.iterdir()] == [NAME]
    assert store.get(store.put(b"")) == b""


@pytest.mark.parametrize("name", ["", "x", "../../../etc/passwd", "A" * 64, "0" * 63, "0" * 64, NAME + "0"])
def test_what_is_not_there_is_not_found(store: BlobStore, name: str) -> None:
    with pytest.raises(NotFound):
        store.get(name)


@pytest.mark.parametrize("damage", ["flipped", "half", "empty", "longer", "link", "dangling link"])
def test_damage_is_told_and_the_next_put_mends_it(store: BlobStore, file: Path, tmp_path: Path, damage: str) -> None:
    store.put(CONTENT)
    file.unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(CONTENT)
    if "link" in damage:
        file.symlink_to(elsewhere if damage == "link" else tmp_path / "nowhere")
    else:
        forms = {"flipped": b"C" + CONTENT[1:], "half": CONTENT[:3500], "empty": b"", "longer": CONTENT + b"x"}
        file.write_bytes(forms[damage])
    with pytest.raises(CorruptLog, match=NAME):
        store.get(NAME)
    assert store.put(CONTENT) == NAME
    assert store.get(NAME) == CONTENT
    assert not file.is_symlink()
    assert elsewhere.read_bytes() == CONTENT


def test_a_folder_in_its_place_is_damage(store: BlobStore, file: Path) -> None:
    file.mkdir(parents=True)
    with pytest.raises(CorruptLog):
        store.get(NAME)


def test_writers_of_equal_content_do_not_disturb_each_other(tmp_path: Path) -> None:
    stores = [BlobStore(RealDisk(), str(tmp_path / "blobs")) for _ in range(8)]
    for number in range(20):
        content = b"%d" % number * 50_000
        with ThreadPoolExecutor(8) as pool:
            names = set(pool.map(lambda store, content=content: store.put(content), stores))
        assert len(names) == 1
        assert stores[0].get(names.pop()) == content
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_half_written_leftover_of_a_crash_is_never_taken_for_the_blob(disk: MemoryDisk) -> None:
    disk.put(f"/blobs/{NAME[:2]}/{NAME}.1.tmp", b"half")
    store = BlobStore(disk, "/blobs")
    store.put(CONTENT)
    assert store.get(NAME) == CONTENT
    assert disk.open_files == 0


class Crash(BaseException):
    """The process ends here."""


@each("operation", range(8))
def test_a_blob_that_was_put_survives_a_power_loss_whatever_happened_before(operation: int) -> None:
    """Another process may have crashed at any operation of putting the same; its name may stand there undurable."""
    disk = MemoryDisk()
    left = [operation]

    def before(_operation: str, _path: str) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Crash

    disk.before = before
    with suppress(Crash):
        BlobStore(disk, "/blobs").put(CONTENT)
    disk.before = lambda _operation, _path: None
    BlobStore(disk, "/blobs").put(CONTENT)
    assert BlobStore(disk.power_loss(), "/blobs").get(NAME) == CONTENT


def test_a_disk_that_is_full_or_fails_is_told(disk: MemoryDisk) -> None:
    disk.room = 100
    store = BlobStore(disk, "/blobs")
    with pytest.raises(OSError, match="No space") as caught:
        store.put(CONTENT)
    assert caught.value.errno == errno.ENOSPC
    assert disk.open_files == 0
    with pytest.raises(NotFound):
        store.get(NAME)


def test_a_blob_has_an_upper_bound(store: BlobStore) -> None:
    class Large(bytes):
        def __len__(self) -> int:
            return BLOB_BYTES_MAX + 1

    with pytest.raises(ValueError, match="at most"):
        store.put(Large())


def test_something_that_is_no_file_in_its_place_is_damage_and_holds_nobody_up(store: BlobStore, file: Path) -> None:
    store.put(CONTENT)
    file.unlink()
    os.mkfifo(file)
    for read in (store.get, store.check, store.reader):
        with pytest.raises(CorruptLog):
            read(NAME)


def test_a_payload_that_lies_in_a_blob_names_it_and_what_it_holds_names_blobs_too() -> None:
    """A look-alike deep in a payload names none."""
    disk = MemoryDisk()
    store = BlobStore(disk, "/blobs")
    inner = store.put(b"picture")
    picture = b'{"page":1,"kind":"drawing","width":1,"height":1,"sha256":"%s","media_type":"image/png"}'
    payload = b'{"request":1,"reading":{"count":1,"pictures":[%s]}}' % (picture % inner.encode())
    digest = store.put(payload)
    moved = b'{"blob":{"sha256":"%s","size":%d,"media_type":"application/json"}}' % (digest.encode(), len(payload))
    alike = b'{"data":{"blob":{"sha256":"%s"}}}' % (b"0" * 64)
    storage = open_segments(disk)
    writer = BatchWriter(storage)
    writer.create(LOG_ID)
    for number, (type, raw) in enumerate((("test.note", alike), ("audit.pictures_read", moved), ("test.note", b"{}"))):
        writer.write([Draft(type, None, raw, f"n{number}", "source")])
    storage.close()

    def found() -> tuple[bool, int, int, Finding | None]:
        result = verify_log(FOLDER, disk, blobs=blob_check(BlobStore(disk, "/blobs")))
        assert result.blobs is not None
        return result.ok, result.events, result.blobs.checked, result.finding

    assert found() == (True, 4, 2, None)
    disk.put(f"/{blob_file(inner)}", b"other")
    wrong = "its content is not what its name says"
    assert found() == (False, 4, 2, Finding(blob_file(inner), 0, 3, wrong))
    disk.put(f"/{blob_file(digest)}", b"other")
    assert found() == (False, 4, 1, Finding(blob_file(digest), 0, 3, wrong))
    disk.unlink(f"/{blob_file(digest)}")
    assert found() == (False, 4, 1, Finding(blob_file(digest), 0, 3, "it is missing"))
    assert verify_log(FOLDER, disk).ok


@each("count", [1, FINDINGS_MAX, FINDINGS_MAX + 7])
def test_every_bad_blob_is_counted_once_and_the_first_are_named(count: int) -> None:
    disk = MemoryDisk()
    storage = open_segments(disk)
    writer = BatchWriter(storage)
    writer.create(LOG_ID)
    for number in range(2 * count):
        name = sha256(b"%d" % (number % count)).hexdigest()
        raw = b'{"sha256":"%s","size":1,"media_type":"image/png"}' % name.encode()
        writer.write([Draft("other.seen", None, raw, f"n{number}", "source")])
    storage.close()
    result = verify_log(FOLDER, disk, blobs=blob_check(BlobStore(disk, "/blobs")))
    assert result.blobs is not None
    assert (result.ok, result.events) == (False, 2 * count + 1)
    assert (result.blobs.checked, result.blobs.bad) == (count, count)
    assert [bad.position for bad in result.blobs.findings] == list(range(2, 2 + min(count, FINDINGS_MAX)))


@each("size, ok", [(5, True), (4, False), (6, False)])
def test_the_size_that_the_event_says_is_the_blobs(size: int, ok: bool) -> None:
    disk = MemoryDisk()
    digest = BlobStore(disk, "/blobs").put(b"large")
    storage = open_segments(disk)
    writer = BatchWriter(storage)
    writer.create(LOG_ID)
    raw = b'{"sha256":"%s","size":%d,"media_type":"image/png"}' % (digest.encode(), size)
    writer.write([Draft("other.seen", None, raw, "n", "source")])
    storage.close()
    assert verify_log(FOLDER, disk, blobs=blob_check(BlobStore(disk, "/blobs"))).ok == ok
