"""The kernel watcher's contact with the world: performs readings, and watches the workspace for changes."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from watchfiles import Change, awatch

from pmagent.actors.core.actor import Io, Performers
from pmagent.actors.kernel import surfaces
from pmagent.actors.kernel.reader import Moment, RealFiles, glance, read_surfaces
from pmagent.contracts.kernel import KernelObserved, KernelReadRequested
from pmagent.events.event import Event

POLL_S = 1.0
"""The surfaces are looked at so often at least (seconds), whatever the system's notifications say or miss."""


async def read(event: Event, io: Io) -> KernelObserved:
    """Performer of kernel.read_requested. Reading is bounded in time, so a cancelled one is let finish
    unseen."""
    return await anyio.to_thread.run_sync(
        partial(read_surfaces, io.workspace, request=event.position), abandon_on_cancel=True
    )


PERFORMERS: Performers = {KernelReadRequested: read}


async def watch(
    workspace: Path, *, known: str = "", stop: anyio.Event | None = None, poll_s: float = POLL_S
) -> AsyncGenerator[KernelObserved, None]:
    """The surfaces whenever their content, or what exists of the files that STATE.json names, has changed.

    The first reading is yielded at once, unless its digest is ``known``. Writes of the projections are no
    surface change and wake nobody. ``share/`` need not exist, and may be deleted, recreated or renamed over. Ends
    when ``stop`` is set.
    """
    world = RealFiles(workspace)
    stopping = stop or anyio.Event()
    reported: tuple[str, list[str]] | None = None
    seen: Moment | None = None
    while not stopping.is_set():
        now = await anyio.to_thread.run_sync(glance, workspace, world, abandon_on_cancel=True)
        if now != seen:
            seen = now
            observed = await anyio.to_thread.run_sync(read_surfaces, workspace, world, abandon_on_cancel=True)
            current = (surfaces.digest(observed.surfaces), observed.existing)
            if current != reported and (reported is not None or current[0] != known):
                yield observed
            reported = current
            # Look again before sleeping: what changed during the reading has raised no notification yet.
            continue
        await _change(workspace, stopping, poll_s)


async def _change(workspace: Path, stopping: anyio.Event, poll_s: float) -> None:
    """Return when something under the watched folders changed, or after ``poll_s`` seconds.

    Folders are watched one by one and not deeply: a workspace may hold far more files than the system has
    watches. A new watch each time costs little, and never holds on to a folder that has been replaced.
    """
    folders = _folders(workspace)
    asleep = anyio.Event()

    async def wake_when_stopped() -> None:
        # The thread that waits for notifications cannot be cancelled; it ends when ``asleep`` is set.
        try:
            with anyio.move_on_after(poll_s):
                await stopping.wait()
        finally:
            asleep.set()

    async with anyio.create_task_group() as both:
        both.start_soon(wake_when_stopped)
        if await _notified(folders, asleep):
            both.cancel_scope.cancel()


async def _notified(folders: list[Path], asleep: anyio.Event) -> bool:
    """Whether a notification came before ``asleep`` was set; false at once if the system gives none."""
    try:
        async with aclosing(
            awatch(*folders, watch_filter=_is_surface, recursive=False, debounce=100, step=20, stop_event=asleep)
        ) as changes:
            async for _ in changes:
                return True
    except (OSError, RuntimeError):
        # Out of watches, or a folder is gone meanwhile: what remains is looking again after poll_s.
        return False
    return False


def _folders(workspace: Path) -> list[Path]:
    named = [*surfaces.PATHS.values(), *surfaces.FURTHER.values()]
    folders = [workspace, *sorted({(workspace / path).parent for path in named})]
    return [folder for folder in folders if os.path.isdir(folder)]


def _is_surface(_: Change, path: str) -> bool:
    """Whether a change can concern a surface: a JSON file, or a folder on the way to one."""
    return path.endswith(".json") or os.path.basename(path) in _ON_THE_WAY


_ON_THE_WAY = frozenset(
    part for path in (*surfaces.PATHS.values(), *surfaces.FURTHER.values()) for part in path.split("/")[:-1]
)
