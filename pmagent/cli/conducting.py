"""A command that has a job done and watches it: progress on stderr, Ctrl-C ends the job in order."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import anyio

from pmagent.cli.job_screen import Screen
from pmagent.cli.job_text import Rendering
from pmagent.flat import flat_errors
from pmagent.jobs.following import Conductor
from pmagent.jobs.kinds import JobRequest
from pmagent.layout import Layout
from projections.jobs import JobView

if TYPE_CHECKING:
    from pmagent.cli.frame import App


def conduct(app: App, shown: Rendering, asked: Any, *, detach: bool = False, plain: bool) -> Any:
    """Ask for the job of the request ``asked`` and show it until it is over: its view; None: it goes on by itself
    (``detach``). ``plain``: a line a change, also on a terminal. Blocking.

    Raises what ``Conductor.conduct`` raises, and KeyboardInterrupt when the job was left.
    """
    screen = Screen(app.output, shown, plain=plain)
    conductor = Conductor(Layout(app.workspace.resolve()), JobRequest(shown.kind, asked), screen)

    async def go() -> JobView | None:
        return await _conducted(conductor, screen, detach=detach)

    with flat_errors():
        return anyio.run(go)


async def _conducted(conductor: Conductor, screen: Screen, *, detach: bool) -> JobView | None:
    job: JobView | None = None
    left = False

    async def heed(signals: AsyncIterator[signal.Signals]) -> None:
        nonlocal left
        asked = False
        async for number in signals:
            if asked or detach or not conductor.asking:
                break
            asked = True
            screen.say(f"the {conductor.kind.word} is being stopped; once more leaves it as it is")
            tasks.start_soon(conductor.cancel, f"cancelled by {number.name}")
        left = True
        tasks.cancel_scope.cancel()

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(heed, signals)
                tasks.start_soon(screen.show)
                job = await conductor.conduct(detach=detach)
                tasks.cancel_scope.cancel()
        finally:
            if left and job is None and conductor.asking:
                screen.say(f"left as it is; {conductor.shown} shows it")
            await screen.close()
    if left and job is None:
        raise KeyboardInterrupt
    return job
