"""The blob store: durable before it is named, checked at each reading, mended where it can be."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from events.blobs import BLOB_BYTES_MAX, BlobStore
from events.disk import RealDisk
from events.errors import CorruptLog, NotFound
from events.event import Draft
from events.verify import Finding, verify_log
from tests.support.logs import FOLDER, LOG_ID, BatchWriter, lines_of, open_segments
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


def test_a_half_written_leftover_of_a_crash_is_never_taken_for_the_blob() -> None:
    disk = MemoryDisk()
    disk.put(f"/blobs/{NAME[:2]}/{NAME}.1.tmp", b"half")
    store = BlobStore(disk, "/blobs")
    store.put(CONTENT)
    assert store.get(NAME) == CONTENT
    assert disk.open_files == 0


class Crash(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("operation", range(8))
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


def test_a_disk_that_is_full_or_fails_is_told() -> None:
    disk = MemoryDisk()
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


def test_a_blob_that_is_gone_or_damaged_is_found_at_the_event_that_names_it() -> None:
    """Only where the payload itself lies in a blob: what merely looks so, deep in a payload, names none."""
    disk = MemoryDisk()
    digest = BlobStore(disk, "/blobs").put(b"large")
    named = b'{"blob":{"sha256":"%s","size":5,"media_type":"text/plain"}}' % digest.encode()
    alike = b'{"data":{"blob":{"sha256":"%s"}}}' % (b"0" * 64)
    storage = open_segments(disk)
    writer = BatchWriter(storage)
    writer.create(LOG_ID)
    for number, raw in enumerate((b"{}", alike, named, b"{}")):
        writer.write([Draft("test.note", None, raw, f"n{number}", "source")])
    storage.close()
    assert verify_log(FOLDER, disk, blobs="/blobs").ok
    path = f"/blobs/{digest[:2]}/{digest}"
    (line,) = (line for line in lines_of(disk) if line.position == 4)

    def found() -> Finding | None:
        result = verify_log(FOLDER, disk, blobs="/blobs")
        assert (result.ok, result.events) == (False, 3)
        return result.finding

    place = line.path.removeprefix(f"{FOLDER}/"), line.start, 4
    disk.put(path, b"other")
    assert found() == Finding(*place, f"{path[1:]}: its content is not what its name says")
    disk.unlink(path)
    assert found() == Finding(*place, f"there is no blob {digest}")
    assert verify_log(FOLDER, disk).ok
