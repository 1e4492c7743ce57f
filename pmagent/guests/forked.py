"""A copy of this process that computes something meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def forked(computed: Callable[[], bytes]) -> Iterator[Callable[[], bytes | None]]:
    """Let a copy of this process compute within the block. The function given returns its result; None where it
    failed or was killed: it says nothing of why, so the caller computes it again. The copy is gone behind the block.

    Raises OSError where no process can be started."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(out)
            with os.fdopen(into, "wb") as told:
                told.write(computed())
            os._exit(0)
        finally:
            os._exit(1)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        left = [child]

        def result() -> bytes | None:
            content = pipe.read()
            return content if os.waitstatus_to_exitcode(os.waitpid(left.pop(), 0)[1]) == 0 else None

        try:
            yield result
        finally:
            if left:
                os.kill(child, 9)
                os.waitpid(child, 0)
