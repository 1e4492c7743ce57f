"""Shares the reading of files among forks of the process that may die of it. The first that is free does the next part,
and the answers are handed back in the order of the parts: nobody sees how they were shared.

A fork that dies takes its parent with it: the parent repeats the announcements that it has heard from it, and ends the
same way. So who started the parent sees what it would have seen of a process that did everything by itself.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import selectors
import signal
import struct
import traceback
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeVar

from pmagent.actors.sandbox.reader.limits import OUT_OF_MEMORY, end_with

T = TypeVar("T")

_PROGRESS: Final = 2
_NUMBER: Final = struct.Struct("<H")
PARTS_MAX: Final = 8_192
"""So many numbers fit into a pipe."""
_CHUNK: Final = 2**16
_KEPT: Final = 2**15
"""So much of what a fork announced is kept."""


class _Fork(NamedTuple):
    """A fork, and what it has answered and announced so far."""

    pid: int
    answered: bytearray
    announced: bytearray


def side_by_side(parts: int, processes: int, work: Callable[[int], T]) -> list[T]:
    """The answers of ``work`` for each number below ``parts`` (at most ``PARTS_MAX``), in their order. In more than one
    process it says things that can be pickled. Ends this process where a fork ends otherwise than well."""
    processes = min(processes, parts)
    if processes < 2:
        return [work(number) for number in range(parts)]
    todo, given = os.pipe()
    os.write(given, b"".join(map(_NUMBER.pack, range(parts))))
    os.close(given)
    gc.freeze()  # what is there already is nobody's garbage
    with selectors.DefaultSelector() as heard:
        forks = [_forked(todo, work, heard) for _ in range(processes)]
        os.close(todo)
        while heard.get_map():
            for key, _ in heard.select():
                _hear(heard, key, forks)
    gc.unfreeze()
    said: dict[int, T] = {}
    for fork in forks:
        said.update(pickle.loads(fork.answered))  # noqa: S301 - written by a fork of ours, within the same wall
    return [said[number] for number in range(parts)]


def _forked(todo: int, work: Callable[[int], T], heard: selectors.BaseSelector) -> _Fork:
    """Start a fork; its pipes are added to ``heard``."""
    ours, parent = (os.pipe(), os.pipe()), os.getpid()
    pid = os.fork()
    if not pid:
        _be(todo, work, ours[0][1], ours[1][1], parent)
    fork = _Fork(pid, bytearray(), bytearray())
    for (reading, writing), kept in zip(ours, (fork.answered, fork.announced), strict=True):
        os.close(writing)
        heard.register(reading, selectors.EVENT_READ, (fork, kept))
    return fork


def _hear(heard: selectors.BaseSelector, key: selectors.SelectorKey, forks: list[_Fork]) -> None:
    fork, kept = key.data
    chunk = os.read(key.fd, _CHUNK)
    kept += chunk
    if kept is fork.announced:
        del kept[:-_KEPT]
    if not chunk:
        heard.unregister(key.fd)
        os.close(key.fd)
        if kept is fork.announced and (status := os.waitpid(fork.pid, 0)[1]):
            _end_like(fork, status, [one.pid for one in forks if one is not fork])


def _end_like(fork: _Fork, status: int, others: list[int]) -> None:
    """End this process as a fork of it has ended; the others end with it."""
    os.write(_PROGRESS, fork.announced)
    for pid in others:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if os.WIFSIGNALED(status):
        signal.raise_signal(os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status))


def _be(todo: int, work: Callable[[int], T], answers: int, progress: int, parent: int) -> None:
    """Be the fork: do one part after the other until there is none, then answer with all. Never returns."""
    try:
        end_with(parent)
        os.dup2(progress, _PROGRESS)
        os.close(progress)
        said = {number: work(number) for number in _numbers(todo)}
        with open(answers, "wb") as pipe:
            pipe.write(pickle.dumps(said, pickle.HIGHEST_PROTOCOL))
        os._exit(0)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BaseException:  # noqa: BLE001 - it is told, and nothing of the parent's must run on in its fork
        os.write(_PROGRESS, traceback.format_exc().encode("utf-8", "backslashreplace"))
        os._exit(1)


def _numbers(todo: int) -> Iterator[int]:
    while number := os.read(todo, _NUMBER.size):
        yield _NUMBER.unpack(number)[0]
