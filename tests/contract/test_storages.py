"""The storages that come with the log, the stores that open them, and those of blobs, keep their contracts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from pmagent.events.blobs import BlobStore
from pmagent.events.disk import RealDisk
from pmagent.events.evidence import log_in
from pmagent.events.postgres.store import PostgresLog
from pmagent.events.s3 import blobs_in
from pmagent.events.storage import Blobs
from pmagent.events.store import LogStore
from tests.support.logs import open_segments
from tests.support.memory_disk import MemoryDisk
from tests.support.memory_log import MemoryLog
from tests.support.memory_storage import MemoryStorage
from tests.support.postgres import Server, one_server
from tests.support.s3 import Bucket, one_bucket
from tests.support.storage_contract import (
    BlobsContract,
    MakeBlobs,
    MakeStorage,
    MakeStore,
    Spoil,
    StorageContract,
    StoreContract,
)


class TestMemory(StorageContract):
    """A list of lines."""

    persistent = False

    @pytest.fixture
    def make(self) -> MakeStorage:
        """New ones."""
        return MemoryStorage


class TestSegments(StorageContract):
    """Files, rolling at each few lines."""

    @pytest.fixture(params=[1, 700, 1 << 26])
    def make(self, request: pytest.FixtureRequest, tmp_path: Path) -> MakeStorage:
        """On the real disk."""
        return lambda: open_segments(RealDisk(), int(request.param), folder=str(tmp_path / "log"))


class TestSegmentsOnMemoryDisk(StorageContract):
    """The same on the tests' own disk, which is thereby shown to be one."""

    @pytest.fixture
    def make(self) -> MakeStorage:
        """On one disk."""
        disk = MemoryDisk()
        return lambda: open_segments(disk)


class TestMemoryStore(StoreContract):
    """Nothing of it is a file."""

    @pytest.fixture
    def make(self) -> MakeStore:
        """New ones."""
        return MemoryLog


class TestSegmentStore(StoreContract):
    """Folders, with one segment and with several."""

    @pytest.fixture(params=[1, 1 << 26])
    def make(self, request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
        """Each in a folder of its own."""
        numbers = count()
        return lambda: log_in(tmp_path / str(next(numbers)) / "log", int(request.param))

    def again(self, store: LogStore) -> LogStore:
        """As another process would make it."""
        return log_in(Path(store.place), 1 << 26)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A PostgreSQL server."""
    with one_server() as made:
        yield made


class TestPostgres(StorageContract):
    """Pages in a database."""

    @pytest.fixture
    def make(self, server: Server, tmp_path: Path) -> Iterator[MakeStorage]:
        """Each time by a holder that takes the log over from the one before."""
        address = server.new_log()
        with ExitStack() as held:
            yield lambda: held.enter_context(
                PostgresLog(address, tmp_path, replicated=False).lease("tests", seize=True)
            ).open()


class TestPostgresStore(StoreContract):
    """Logs in one database."""

    @pytest.fixture
    def make(self, server: Server, tmp_path: Path) -> MakeStore:
        """Each with a name of its own."""
        return lambda: PostgresLog(server.new_log(), tmp_path / "blobs", replicated=False)


class TestFolderOfBlobs(BlobsContract):
    """Files."""

    @pytest.fixture
    def make(self, tmp_path: Path) -> MakeBlobs:
        """In one folder."""
        return lambda: BlobStore(RealDisk(), str(tmp_path))

    @pytest.fixture
    def spoil(self, tmp_path: Path) -> Spoil:
        """Change the file."""

        def spoil(name: str) -> None:
            (path,) = tmp_path.glob(f"??/{name}")
            content = path.read_bytes()
            path.write_bytes(bytes([content[0] ^ 1]) + content[1:])

        return spoil


class TestPostgresBlobs(BlobsContract):
    """Rows of a log's database."""

    @pytest.fixture
    def make(self, server: Server, tmp_path: Path) -> Iterator[MakeBlobs]:
        """Beside one log, whose lease is held; each time with a cache of its own."""
        store, numbers = PostgresLog(server.new_log(), tmp_path, replicated=False), count()
        with store.lease("tests"):

            def make() -> Blobs:
                store._blobs = tmp_path / str(next(numbers))
                return store.blobs()

            yield make

    @pytest.fixture
    def spoil(self, server: Server) -> Spoil:
        """Change the first piece."""

        def spoil(name: str) -> None:
            found = f"SELECT upload FROM pm.blob WHERE sha256 = decode('{name}', 'hex')"
            changed = "set_byte(bytes, 1, get_byte(bytes, 1) # 1)"
            server.sql(f"UPDATE pm.piece SET bytes = {changed} WHERE n = 0 AND upload IN ({found})")

        return spoil


class TestS3Blobs(BlobsContract):
    """Objects of a bucket."""

    @pytest.fixture
    def make(self, bucket: Bucket, tmp_path: Path) -> MakeBlobs:
        """In one bucket, each time with a cache of its own."""
        numbers = count()
        return lambda: blobs_in(
            bucket.place, BlobStore(RealDisk(), str(tmp_path / str(next(numbers)))), lambda: None
        )

    @pytest.fixture
    def spoil(self, bucket: Bucket) -> Spoil:
        """Change the object."""
        return bucket.spoil


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    """A bucket of a server that speaks the protocol of S3."""
    with one_bucket() as made:
        yield made
