"""The storages that come with the log, and the stores that open them, keep their contracts."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from pmagent.events.disk import RealDisk
from pmagent.events.evidence import log_in
from pmagent.events.memory import MemoryStorage
from pmagent.events.store import LogStore
from tests.support.logs import open_segments
from tests.support.memory_disk import MemoryDisk
from tests.support.memory_log import MemoryLog
from tests.support.storage_contract import MakeStorage, MakeStore, StorageContract, StoreContract


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
