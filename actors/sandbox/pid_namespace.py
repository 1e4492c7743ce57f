"""The processes inside a sandbox, seen from outside: its first process, whose end is the end of all, and the rest."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import resource
import select
import signal
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import anyio

from pmagent.actors.sandbox.spec import ARTIFACTS

_RESIDENT = re.compile(r"^(?:RssAnon|RssShmem|VmPTE):\s+(\d+) kB$", re.MULTILINE)


def has_ended(handle: int) -> bool:
    """Whether the process of a pidfd has ended."""
    asked = select.poll()
    asked.register(handle, select.POLLIN)
    return bool(asked.poll(0))


async def ended(handle: int) -> None:
    """Wait until the process of a pidfd has ended."""
    if not has_ended(handle):
        await anyio.wait_readable(handle)


class PidNamespace:
    """A sandbox's processes: ``first`` is the pid, out here, of its namespace's process 1, ``handle`` a pidfd of it."""

    def __init__(self, first: int, handle: int) -> None:
        self._first = first
        self._handle = handle

    @classmethod
    def of(cls, first: int) -> PidNamespace | None:
        """The sandbox whose process 1 is ``first``; None when that has ended already. Raises OSError."""
        with ExitStack() as stack:
            try:
                handle = os.pidfd_open(first)
                stack.callback(os.close, handle)
                with open(f"/proc/{first}/status", "rb", buffering=0) as file:
                    status = file.read()
            except (ProcessLookupError, FileNotFoundError):
                return None
            ids = status.partition(b"\nNSpid:")[2].partition(b"\n")[0].split()
            if len(ids) < 2 or ids[-1] != b"1":  # the number belongs to another process by now
                return None
            stack.pop_all()
            return cls(first, handle)

    def namespace(self, kind: str) -> int:
        """A descriptor of its namespace ("net", …). Raises OSError; ProcessLookupError when it has ended."""
        descriptor = os.open(f"/proc/{self._first}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
        if has_ended(self._handle):  # so the number may have been another's when it was opened
            os.close(descriptor)
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        return descriptor

    def undumped(self) -> bool:
        """Keep the kernel from making core dumps of it and of all that it will start; False: that cannot be. To be
        called before its first process starts the second: what is being started then has the limit or has it not.

        A limit of 0 does that only where dumps are files; a program of the host that gets them (``|``) gets them all
        the same, past every limit of the sandbox. With 1 it does not (Linux, fs/coredump.c). Of sockets (``@``, 6.16)
        that is not known.
        """
        with open("/proc/sys/kernel/core_pattern", "rb", buffering=0) as file:
            goes = file.read(1)
        try:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(self._first, resource.RLIMIT_CORE, (1, 1))
        except PermissionError:  # ours is 0, and an ordinary user raises none
            return goes not in {b"|", b"@"}
        return goes != b"@"

    def terminate(self) -> None:
        """TERM to every process but the first, which bubblewrap is itself and which ends with the last of them. Who
        cannot be reached, for want of descriptors, gets none; KILL reaches all."""
        handles: dict[int, int] = {}
        try:
            with contextlib.suppress(OSError):
                for pid in self.below():
                    with contextlib.suppress(ProcessLookupError):
                        handles[pid] = os.pidfd_open(pid)
            # A number may have changed hands before its handle was opened. A process still below now was so then.
            with contextlib.suppress(OSError):
                for pid in self.below():
                    if pid in handles:
                        with contextlib.suppress(ProcessLookupError):
                            signal.pidfd_send_signal(handles[pid], signal.SIGTERM)
        finally:
            for handle in handles.values():
                os.close(handle)

    def kill(self) -> None:
        """KILL to the first process; the kernel ends the others with it."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    async def gone(self) -> None:
        """Wait until the first process has ended: then no process of its namespace is left."""
        await ended(self._handle)

    def wait(self) -> None:
        """``gone``, blocking."""
        select.select([self._handle], [], [])

    def memory(self) -> int:
        """Bytes of memory that the processes use which no file on a disk holds, page tables included; what is shared is
        counted for each."""
        used = 0
        for pid in self.below():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
                used += sum(int(found) for found in _RESIDENT.findall(status)) * 1024
        return used

    def folders(self, paths: Sequence[str], artifacts: str) -> list[int]:
        """Handles of these folders as the sandbox has them; none as long as it is not built or once it has ended. It is
        known by ``artifacts``, a folder of ours that lies at ``/artifacts`` in it."""
        root = f"/proc/{self._first}/root"
        handles: list[int] = []
        with ExitStack() as stack:
            try:
                ours = os.path.samestat(os.stat(root), os.stat("/"))
                if ours or not os.path.samestat(os.stat(root + ARTIFACTS), os.stat(artifacts)):
                    return []
                for path in paths:
                    handles.append(os.open(root + path, os.O_PATH | os.O_CLOEXEC))
                    stack.callback(os.close, handles[-1])
            except (FileNotFoundError, ProcessLookupError):
                return []
            stack.pop_all()
        return handles

    def close(self) -> None:
        """Let go of it."""
        os.close(self._handle)

    def below(self) -> list[int]:
        """The pids, out here, of all its processes but the first."""
        found: list[int] = []
        pending = [self._first]
        while pending:
            tasks = Path(f"/proc/{pending.pop()}/task")
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                for task in list(tasks.iterdir()):
                    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                        children = [int(pid) for pid in (task / "children").read_text().split()]
                        found += children
                        pending += children
        return found
