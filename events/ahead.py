"""Checking the chain of a long log ahead of whoever decodes and folds it: in a fork of this process, where a second
processor is there for it.

The fork reads and checks as everybody does (``pmagent.events.reader``) and hands over the lines that it has checked,
through a pipe: what is decoded is what was checked. Where it hands over nothing more, reading goes on here, so it need
not say why, and whatever is wrong with a line is found and said by the same code as ever.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import threading
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from typing import Final

import msgspec

from pmagent.events.errors import PmagentError
from pmagent.events.event import StoredEvent
from pmagent.events.line import decode_chunk
from pmagent.events.reader import RUN_BYTES, Reader, runs
from pmagent.events.storage import StorageReader

AHEAD_EVENTS_MIN: Final = 5_000
"""A shorter way is read sooner than a fork saves anything."""

_PIPE_BYTES: Final = 1 << 20
_SIZE: Final = struct.Struct("<I")


def may_fork() -> bool:
    """Whether there are a processor for a second process, and no threads, whose locks it would copy."""
    return len(os.sched_getaffinity(0)) > 1 and threading.active_count() == 1


def long_runs(
    storage: StorageReader, position: int = 1, until: int | None = None, chunk_bytes: int = RUN_BYTES
) -> Generator[Sequence[StoredEvent], None, None]:
    """``pmagent.events.reader.runs`` for whoever goes through all that there is. To be closed, also where it is not
    read to its end: until then its fork lives. Raises what ``runs`` raises."""
    end = storage.tail().position if until is None else until
    if end - position >= AHEAD_EVENTS_MIN and storage.reads_files and may_fork():
        with closing(_checked_elsewhere(storage, position, end, chunk_bytes)) as chunks:
            for chunk in chunks:
                try:
                    run = decode_chunk(chunk)
                except msgspec.DecodeError:
                    break  # found again below
                if [event.position for event in run] != list(range(position, position + len(run))):
                    break
                run = run[: end - position + 1]
                position += len(run)
                yield run
    yield from runs(storage, position, until, chunk_bytes)


def _checked_elsewhere(
    storage: StorageReader, position: int, until: int, chunk_bytes: int
) -> Generator[bytes, None, None]:
    """Runs of whole lines from ``position`` on, checked by a fork, as far as it comes."""
    out, into = os.pipe()
    with open(out, "rb") as pipe:
        try:
            fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            child = os.fork()
        except OSError:  # no process, or no memory for it, is to be had
            os.close(into)
            return
        if child == 0:
            os.close(out)  # or nobody would tell the fork that its parent has gone
            _be_the_fork(storage, position, until, chunk_bytes, into)
        os.close(into)
        try:
            while len(size := pipe.read(_SIZE.size)) == _SIZE.size:
                chunk = pipe.read(_SIZE.unpack(size)[0])
                if not chunk.endswith(b"\n"):
                    return  # it died meanwhile
                yield chunk
        finally:
            pipe.close()  # which ends the fork: it writes all the time
            with suppress(ChildProcessError):  # who started us may have told the kernel to keep no ended children
                os.waitpid(child, 0)


def _be_the_fork(storage: StorageReader, position: int, until: int, chunk_bytes: int, into: int) -> None:
    """Hand over checked lines as long as somebody takes them. Never returns."""
    try:
        signal.set_wakeup_fd(-1)  # signals are the parent's
        reader = Reader(storage, position, chunk_bytes)
        with open(into, "wb", buffering=0) as pipe:
            while reader.tail.position < until and (chunk := reader.next_lines()):
                left = memoryview(_SIZE.pack(len(chunk)) + chunk)
                while left:
                    left = left[pipe.write(left) :]
    except (PmagentError, OSError):
        pass  # the parent finds it, too, or has ended
    finally:
        os._exit(0)
