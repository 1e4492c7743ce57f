"""Work in a thread that ends when nobody waits for it any more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

T = TypeVar("T")


async def stoppable(work: Callable[[threading.Event], T]) -> T:
    """The result of ``work``, run in a thread. A cancelled caller sets the event that ``work`` gets, and waits until it
    has returned, so that its processes are gone. An exception comes as a group: expected errors are results."""
    stop = threading.Event()
    outcome: list[T] = []

    async def run() -> None:
        with anyio.CancelScope(shield=True):
            outcome.append(await anyio.to_thread.run_sync(work, stop))
        done.set()

    done = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        try:
            await done.wait()
        except BaseException:
            stop.set()
            raise
    return outcome[0]
