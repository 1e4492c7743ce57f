"""The storages that come with the log keep the storage contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from events.disk import RealDisk
from events.memory import MemoryStorage
from tests.support.logs import open_segments
from tests.support.memory_disk import MemoryDisk
from tests.support.storage_contract import MakeStorage, StorageContract


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
