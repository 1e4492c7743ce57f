"""A blob read piece by piece: its last piece is handed out only when all of it is what its name says."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.storage import BlobReader
from tests.support.cases import each

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    """An empty store."""
    return BlobStore(RealDisk(), str(tmp_path / "blobs"))


def path_of(tmp_path: Path, content: bytes) -> Path:
    """Where a content lies."""
    name = sha256(content).hexdigest()
    return tmp_path / "blobs" / name[:2] / name


@pytest.fixture
def reader(store: BlobStore) -> Iterator[BlobReader]:
    """A reader of the content."""
    opened = store.reader(store.put(CONTENT))
    yield opened
    opened.close()


@each("size", [1_000, 1_024, 10_240, 10_241, 1 << 20])
def test_the_pieces_are_the_content(reader: BlobReader, size: int) -> None:
    pieces = list(reader.pieces(size))
    assert b"".join(pieces) == CONTENT
    assert max(map(len, pieces)) <= size
    assert reader.size == len(CONTENT)


def test_it_can_be_read_again(reader: BlobReader) -> None:
    assert list(reader.pieces()) == list(reader.pieces()) == [CONTENT]


def test_of_nothing_there_is_no_piece(store: BlobStore) -> None:
    reader = store.reader(store.put(b""))
    assert (list(reader.pieces()), reader.size) == ([], 0)
    reader.close()


@pytest.mark.parametrize("at", [0, 5_000, len(CONTENT) - 1])
def test_of_a_damaged_blob_the_last_piece_never_comes(store: BlobStore, tmp_path: Path, at: int) -> None:
    name = store.put(CONTENT)
    damaged = bytearray(CONTENT)
    damaged[at] ^= 1
    path_of(tmp_path, CONTENT).write_bytes(damaged)
    reader = store.reader(name)
    had: list[bytes] = []
    with pytest.raises(CorruptLog, match="its content is not what its name says"):
        had.extend(reader.pieces(1_000))
    assert len(b"".join(had)) == 10_000, "all but the last piece, of 240 bytes"
    reader.close()


def test_a_blob_that_becomes_shorter_meanwhile_is_damaged(reader: BlobReader, tmp_path: Path) -> None:
    pieces = reader.pieces(1_000)
    next(pieces)
    with path_of(tmp_path, CONTENT).open("r+b") as file:
        file.truncate(3_000)
    with pytest.raises(CorruptLog):
        list(pieces)


def test_what_is_written_behind_its_end_is_not_the_blob_s(reader: BlobReader, tmp_path: Path) -> None:
    with path_of(tmp_path, CONTENT).open("ab") as file:
        file.write(b"more")
    assert b"".join(reader.pieces()) == CONTENT


@pytest.mark.parametrize("name", ["", "ab", "g" * 64, "A" * 64, "../../../../etc/passwd", "0" * 63 + "/"])
def test_what_is_no_blob_s_name_is_not_looked_for(store: BlobStore, name: str) -> None:
    with pytest.raises(NotFound, match="is not the name of a blob"):
        store.reader(name)


def test_a_blob_that_was_removed_is_told_so(store: BlobStore, tmp_path: Path) -> None:
    name = store.put(CONTENT)
    path_of(tmp_path, CONTENT).unlink()
    with pytest.raises(NotFound, match="there is no blob"):
        store.reader(name)


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_link_and_a_folder_are_no_blobs(store: BlobStore, tmp_path: Path, kind: str) -> None:
    name = store.put(CONTENT)
    blob = path_of(tmp_path, CONTENT)
    blob.unlink()
    if kind == "folder":
        blob.mkdir()
    else:
        (tmp_path / "elsewhere").write_bytes(CONTENT)
        blob.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptLog):
        store.reader(name)
