"""The inner half of reading code of others, in the process that may die of it: each file is announced on standard error
(``@`` and its path) before it is read, so that the outer half (``wary``) knows which one was the last."""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from typing import Final

from pmagent.actors.audit.detectors.code.parse import parsed
from pmagent.actors.audit.detectors.code.source import Source
from pmagent.actors.sandbox.reader.limits import OUT_OF_MEMORY

MARK: Final = "@"
FILE_CPU_SECONDS: Final = 120
"""A file that takes longer ends the process."""

_ANSWERS: Final = 1
_PROGRESS: Final = 2
"""Descriptors: pipes to the one who started this process; nothing here is a terminal."""
_OBJECTS_UNLOOKED: Final = 400_000
"""So many new objects (of some hundred kilobytes of code) are made before garbage is looked for: a tree is all new
objects, and to look at them again and again takes as long as to parse it."""
_STACK_BYTES: Final = 256 * 2**20
_PARSED_DEPTH: Final = 1_000
_WALKED_DEPTH: Final = 50_000
"""No tree that is parsed within the first is so deep that to walk it wants the second."""


def take(path: str, content: bytes, use: Callable[[Source], None]) -> None:
    """Parse a file and let it be used."""
    _say(path.encode("utf-8", "backslashreplace"))
    signal.setitimer(signal.ITIMER_PROF, FILE_CPU_SECONDS)
    sys.setrecursionlimit(_PARSED_DEPTH)
    source = parsed(path, content)
    sys.setrecursionlimit(_WALKED_DEPTH)
    use(source)
    signal.setitimer(signal.ITIMER_PROF, 0)


def finish() -> None:
    """No file is being read any more."""
    _say(b"")


def answering(answer: Callable[[bytes], bytes]) -> None:
    """Answer the request on standard input, on a stack on which deep trees can be walked. Exits with 1 if it fails."""
    gc.set_threshold(_OBJECTS_UNLOOKED, 2, 2)
    room = resource.getrlimit(resource.RLIMIT_AS)[0]
    threading.stack_size(_STACK_BYTES if room == resource.RLIM_INFINITY else min(_STACK_BYTES, room // 8))
    done = threading.Event()
    thread = threading.Thread(target=_answer, args=(answer, done))
    try:
        thread.start()
    except RuntimeError:  # there is no room for its stack
        os._exit(OUT_OF_MEMORY)
    thread.join()
    sys.exit(0 if done.is_set() else 1)


def _answer(answer: Callable[[bytes], bytes], done: threading.Event) -> None:
    try:
        said = answer(sys.stdin.buffer.read())
        with open(_ANSWERS, "wb", closefd=False) as pipe:
            pipe.write(said)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)  # nothing is tidied up: that would want memory
    done.set()


def _say(text: bytes) -> None:
    os.write(_PROGRESS, b"%s%s\n" % (MARK.encode(), text))
