"""A command that has a job done and watches it: progress on stderr, Ctrl-C ends the job in order."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from typing import TypeVar

import anyio

from pmagent.cli.job_screen import Screen
from pmagent.flat import flat_errors
from pmagent.jobs.following import Conductor, Errand
from pmagent.jobs.progress import Folded
from pmagent.layout import Layout

P = TypeVar("P", bound=Folded)


def conduct(layout: Layout, errand: Errand[P], screen: Screen[P], *, detach: bool) -> P | None:
    """Ask for the job and show it until it is over; None: it goes on by itself (``detach``). Blocking.

    Raises what ``Conductor.conduct`` raises, and KeyboardInterrupt when the job was left.
    """

    async def go() -> P | None:
        return await _conducted(Conductor(layout, errand, screen), screen, detach=detach)

    with flat_errors():
        return anyio.run(go)


async def _conducted(conductor: Conductor[P], screen: Screen[P], *, detach: bool) -> P | None:
    progress: P | None = None
    left = False

    async def heed(signals: AsyncIterator[signal.Signals]) -> None:
        nonlocal left
        asked = False
        async for number in signals:
            if asked or detach or not conductor.asking:
                break
            asked = True
            screen.say(f"the {conductor.errand.kind.word} is being stopped; once more leaves it as it is")
            tasks.start_soon(conductor.cancel, f"cancelled by {number.name}")
        left = True
        tasks.cancel_scope.cancel()

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(heed, signals)
                tasks.start_soon(screen.show)
                progress = await conductor.conduct(detach=detach)
                tasks.cancel_scope.cancel()
        finally:
            if left and progress is None and conductor.asking:
                screen.say(f"left as it is; {conductor.shown} shows it")
            await screen.close()
    if left and progress is None:
        raise KeyboardInterrupt
    return progress
