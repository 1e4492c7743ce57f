"""Watches, from outside, the resources that the kernel does not bound without a cgroup; blocking.

Looked at are: what lies in the artifact folder, how many files the folders in memory hold, the memory of all processes
together, and what is left of the disks that are written. A process that is faster than the interval gets as far as it
can in the time between two. Nothing that is looked at is believed: folders are opened from the folder they lie in,
links never.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from pmagent.actors.sandbox.pid_namespace import PidNamespace
from pmagent.actors.sandbox.spec import ARTIFACTS, IN_MEMORY, Limits
from pmagent.events.tree import held

DEPTH_MAX: Final = 64
"""Folders in folders among the artifacts, each of which costs the look a descriptor."""

FREE_ENTRIES_MIN: Final = 1000
"""So many files must still be possible on a disk that is written, where it has a number of them at all."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BLOCK: Final = 512  # of st_blocks, whatever the disk's are


class Exceeded(Exception):
    """No error, what a look comes to: more than allowed. The message says of what, for people."""


class Monitor:
    """Looks at the run of ``inside``, which writes to ``artifacts`` and to ``writable``, folders of the host."""

    def __init__(self, limits: Limits, inside: PidNamespace, artifacts: str, writable: Iterable[str]) -> None:
        self._limits = limits
        self._inside = inside
        self._artifacts = artifacts
        self._disks = (artifacts, *writable)
        self._in_memory: list[int] = []

    def look(self) -> str:
        """The bound that is exceeded, in words; "" when none is. A resource that can no longer be read counts as
        exceeded."""
        try:
            self._look_at_artifacts()
            self._look_at_memory()
            self._look_at_disks()
        except Exceeded as exceeded:
            return str(exceeded)
        except OSError as error:
            return f"what it uses cannot be looked at: {error.strerror}"
        return ""

    def close(self) -> None:
        """Let go of the folders in memory, which last as long as somebody holds them."""
        while self._in_memory:
            os.close(self._in_memory.pop())

    def _look_at_artifacts(self) -> None:
        with held(os.open(self._artifacts, _FOLDER)) as top:
            self._count(top, 0, (0, 0))

    def _count(self, folder: int, depth: int, found: tuple[int, int]) -> tuple[int, int]:
        """``found``, entries and bytes, and what is in ``folder`` on top of it."""
        if depth > DEPTH_MAX:
            raise Exceeded(f"more than {DEPTH_MAX} folders in each other in {ARTIFACTS}")
        count, size = found
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                count += 1
                inner = entry.is_dir(follow_symlinks=False)
                size += status.st_blocks * _BLOCK // (1 if inner else max(1, status.st_nlink))
                if count > self._limits.artifact_entries:
                    raise Exceeded(f"more than {self._limits.artifact_entries} files and folders in {ARTIFACTS}")
                if size > self._limits.artifact_bytes:
                    raise Exceeded(f"more than {self._limits.artifact_bytes} bytes in {ARTIFACTS}")
                if inner:
                    count, size = self._below(folder, entry.name, depth, (count, size))
        return count, size

    def _below(self, folder: int, name: str, depth: int, found: tuple[int, int]) -> tuple[int, int]:
        try:
            below = os.open(name, _FOLDER, dir_fd=folder)
        except (FileNotFoundError, NotADirectoryError):  # gone, or another thing by now
            return found
        except PermissionError as error:
            raise Exceeded(f"a folder in {ARTIFACTS} that cannot be looked into") from error
        with held(below):
            return self._count(below, depth + 1, found)

    def _look_at_memory(self) -> None:
        if not self._in_memory:
            self._in_memory = self._inside.folders(IN_MEMORY, self._artifacts)
        most = self._limits.tmp_entries
        used = (os.fstatvfs(handle) for handle in self._in_memory)
        if sum(found.f_files - found.f_ffree for found in used) > most:
            raise Exceeded(f"more than {most} files and folders in {', '.join(IN_MEMORY)}")
        if self._inside.memory() > self._limits.total_memory_bytes:
            raise Exceeded(f"more than {self._limits.total_memory_bytes} bytes of memory by all processes")

    def _look_at_disks(self) -> None:
        for path in self._disks:
            found = os.statvfs(path)
            if found.f_bavail * found.f_frsize < self._limits.free_bytes:
                raise Exceeded(f"less than {self._limits.free_bytes} bytes are left on the disk")
            if found.f_files and found.f_favail < FREE_ENTRIES_MIN:
                raise Exceeded(f"less than {FREE_ENTRIES_MIN} files are left on the disk")
