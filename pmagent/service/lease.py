"""The lease of the log, where several machines can reach it, and the effects of this process (docs/design.md §4.6)."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import anyio

from pmagent.actors.core.runtime import Runtime
from pmagent.events.errors import PmagentError
from pmagent.events.lease import Act
from pmagent.events.storage import HeldLease
from pmagent.service import fence

LOOKS_PER_LEASE: Final = 120
"""So often in a lease is looked whether anything has changed."""

LOOK_SECONDS: Final = 0.25
"""So often at least."""


class FenceGone(PmagentError, exit_code=70):
    """The process that would end this one at the end of its lease has ended itself."""


class Lease(Protocol):
    """As much of a lease as its fence needs; see ``pmagent.events.storage.HeldLease``."""

    renewed: Callable[[int], None]

    @property
    def ends(self) -> int:
        """Whatever it allows has ended by this BOOTTIME, in ns."""

    def live(self) -> bool:
        """Whether something may start now."""


class Fence:
    """The fence of ``lease``: a process beside this one that kills it, and with it all that it has started, if anything
    runs when the lease ends. That one counts also while this process is stopped: between the question whether the lease
    is live and the start of an effect, or while one runs."""

    def __init__(self, lease: Lease, cells: mmap.mmap, process: subprocess.Popen[bytes]) -> None:
        self._lease = lease
        self._cells = memoryview(cells).cast("q")
        self._process = process
        self._runs = False
        self._cells[fence.ENDS] = lease.ends
        lease.renewed = self._renewed

    def live(self) -> bool:
        """Whether something may start now: then it must, at once, or ``keep`` says that nothing does."""
        if not self._lease.live():
            return False
        self._cells[fence.RUNS] = 1
        if self._lease.live():  # it was not stopped meanwhile; from here on it is killed in time
            return True
        self._cells[fence.RUNS] = self._runs
        return False

    def check(self) -> None:
        """Raises FenceGone where the process beside this one has ended."""
        if self._process.poll() is not None:
            raise FenceGone("the process that ends this one with its lease has ended", "start it again")

    def _renewed(self, ends: int) -> None:
        self._cells[fence.ENDS] = ends


class FencedLease(Fence):
    """The lease of the log, with its fence."""

    def __init__(self, lease: HeldLease, cells: mmap.mmap, process: subprocess.Popen[bytes]) -> None:
        super().__init__(lease, cells, process)
        self._held = lease

    async def keep(self, runtime: Runtime) -> None:
        """Tell ``runtime`` how the lease stands, until cancelled. Raises FenceGone."""
        while True:
            for change in self._held.changes():
                if isinstance(change, Act):
                    runtime.leased()
                else:
                    runtime.lapsed(over=change.over)
            self._runs = runtime.performing
            self._cells[fence.RUNS] = self._runs
            self.check()
            await anyio.sleep(min(LOOK_SECONDS, self._held.seconds / LOOKS_PER_LEASE))


@contextmanager
def fenced(lease: HeldLease | None) -> Iterator[FencedLease | None]:
    """The lease with its fence, for the length of the block; None for a log that nobody else can reach."""
    if lease is None:
        yield None
        return
    with _beside(lease) as (cells, process):
        yield FencedLease(lease, cells, process)


@contextmanager
def fence_of(lease: Lease) -> Iterator[Fence]:
    """The fence of another lease, for the length of the block."""
    with _beside(lease) as (cells, process):
        yield Fence(lease, cells, process)


@contextmanager
def _beside(lease: Lease) -> Iterator[tuple[mmap.mmap, subprocess.Popen[bytes]]]:
    shared, own = os.memfd_create("pmagent-lease"), os.pidfd_open(os.getpid())
    try:
        os.ftruncate(shared, mmap.PAGESIZE)
        command = [sys.executable, "-I", "-S", str(Path(fence.__file__)), str(shared), str(own)]
        process = subprocess.Popen(
            command, pass_fds=(shared, own), stdin=subprocess.DEVNULL, start_new_session=True, cwd="/"
        )
        cells = mmap.mmap(shared, mmap.PAGESIZE)
    finally:
        os.close(shared)
        os.close(own)
    try:
        yield cells, process
    finally:
        lease.renewed = lambda _ends: None
        process.kill()
        process.wait()
