"""Having a job done and showing it while it goes on, on stderr: on a terminal a table that is drawn anew in place, else
a line a change. Ctrl-C ends the job in order.

The table is written over itself with one write a time; the cursor is never hidden nor moved elsewhere, so there is
nothing to restore, however the program ends. Writing is done in threads: a terminal that was halted (Ctrl-S), or a pipe
that nobody reads, holds up no job.
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread
import click

from pmagent.clean import width
from pmagent.cli.job_text import Rendering, change_line
from pmagent.cli.output import Output, Piece, Styled
from pmagent.events.log import now
from pmagent.exitcodes import Exit
from pmagent.flat import flat_errors
from pmagent.jobs.catalogue import Entry
from pmagent.jobs.following import JobFollower
from pmagent.jobs.history import opened
from pmagent.jobs.kinds import JobRequest
from pmagent.projections.views.jobs import Change, JobView
from pmagent.workspace.layout import Layout

if TYPE_CHECKING:
    from pmagent.cli.frame import App

TICK_SECONDS: Final = 0.25
"""So often the table is drawn when nothing changes but the time."""
REST_SECONDS: Final = 0.1
"""Between two drawings, however much changes."""
ROWS_LEFT: Final = 2
"""Lines of the terminal that the table leaves: one for the cursor, one for what came before."""


def follow_job(app: App, shown: Rendering, asked: Any, *, detach: bool = False, plain: bool) -> Any:
    """Ask for the job of the request ``asked`` and show it until it is over: its view; None: it goes on by itself
    (``detach``). ``plain``: a line a change, also on a terminal. Blocking.

    Raises what ``JobFollower.run`` raises, and KeyboardInterrupt when the job was left.
    """
    return _on_screen(app, shown, asked, partial(JobFollower.run, detach=detach), plain=plain, detach=detach)


def attach(app: App, shown: Rendering, entry: Entry, *, plain: bool) -> Any:
    """Show a job that was asked for before, as the command that asked for it would, until it is over: its view. Ctrl-C
    leaves the job as it is. Blocking. Raises DaemonGone, KeyboardInterrupt."""
    with opened(app.layout) as jobs:
        asked = jobs.at(entry.position).data
    follow = partial(JobFollower.attach, position=entry.position)
    return _on_screen(app, shown, asked, follow, plain=plain, detach=True)


def watch_list(app: App, lines: Callable[[int, int], list[list[Piece]]]) -> int:
    """Show ``lines`` (so wide, so many) on the terminal, anew whenever the log has grown, until Ctrl-C."""
    output, panel = app.output, _Panel(app.output)
    if output.notes_screen() is None:
        raise click.UsageError("--watch draws on a terminal, and there is none: pmagent log tail --follow shows events")
    news = app.daemon_news()
    while (size := output.notes_screen()) is not None:
        with opened(app.layout) as jobs:
            position = jobs.storage.tail().position
            panel.draw(news, lines(size.columns - 1, max(1, size.lines - ROWS_LEFT - 1)), size.columns, size.lines)
            while not (news := app.daemon_news()) and output.notes_screen() == size:
                if jobs.storage.changes(position, TICK_SECONDS):
                    break
    return Exit.DONE


def _on_screen(
    app: App, shown: Rendering, asked: Any, follow: Callable[[JobFollower], Awaitable[JobView | None]], *,
    plain: bool, detach: bool,
) -> Any:
    screen = Screen(app.output, shown, plain=plain)
    follower = JobFollower(Layout(app.workspace.resolve()), JobRequest(shown.kind, asked), screen)

    async def go() -> JobView | None:
        return await _run_on_screen(follower, partial(follow, follower), screen, detach=detach)

    with flat_errors():
        return anyio.run(go)


async def _run_on_screen(
    follower: JobFollower, follow: Callable[[], Awaitable[JobView | None]], screen: Screen, *, detach: bool
) -> JobView | None:
    job: JobView | None = None
    left = False

    async def heed(signals: AsyncIterator[signal.Signals]) -> None:
        nonlocal left
        asked = False
        async for number in signals:
            if asked or detach or not follower.asking:
                break
            asked = True
            screen.say(f"the {follower.kind.word} is being stopped; a second Ctrl-C or SIGTERM leaves it as it is")
            tasks.start_soon(follower.cancel, f"cancelled by {number.name}")
        left = True
        tasks.cancel_scope.cancel()

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(heed, signals)
                tasks.start_soon(screen.show)
                job = await follow()
                tasks.cancel_scope.cancel()
        finally:
            if left and job is None and follower.asking:
                screen.say(f"left as it is; {follower.shown} shows it")
            await screen.close()
    if left and job is None:
        raise KeyboardInterrupt
    return job


class Screen:
    """A JobObserver that shows a job as ``shown`` has it. ``plain``: a line a change, also on a terminal. Use ``show``
    as a task, ``close`` at the end."""

    def __init__(self, output: Output, shown: Rendering, *, plain: bool) -> None:
        self._output = output
        self._shown = shown
        self._drawn = not plain and output.notes_screen() is not None
        self._job: JobView | None = None
        self._lines: list[list[Piece]] = []
        self._news = anyio.Event()
        self._panel = _Panel(output)

    def updated(self, job: JobView, changes: Sequence[Change]) -> None:
        """See JobObserver."""
        self._job = job
        if not self._drawn:
            self._lines += [change_line(change, self._shown.kind.word) for change in changes]
        self._news.set()

    def say(self, text: str) -> None:
        """See JobObserver."""
        self._lines.append([Styled("note:", "yellow"), f" {text}"])
        self._news.set()

    async def show(self) -> None:
        """Show what comes, until this is cancelled."""
        while True:
            with anyio.move_on_after(TICK_SECONDS if self._drawn and self._job else None):
                await self._news.wait()
            self._news = anyio.Event()
            await self._draw()
            await anyio.sleep(REST_SECONDS)

    async def close(self) -> None:
        """Show the last of it."""
        await self._draw()

    async def _draw(self) -> None:
        with anyio.CancelScope(shield=True):  # what was taken to be said is said
            lines, self._lines = self._lines, []
            if not self._drawn:
                await anyio.to_thread.run_sync(self._note, lines)
                return
            size = self._output.notes_screen()
            if size is None:  # the terminal is gone
                return
            rows: list[list[Piece]] = []
            if self._job is not None:
                rows = self._shown.table(self._job, now(), size.columns - 1, max(1, size.lines - ROWS_LEFT))
            await anyio.to_thread.run_sync(self._panel.draw, lines, rows, size.columns, size.lines)

    def _note(self, lines: list[list[Piece]]) -> None:
        for line in lines:
            self._output.note(*line)


class _Panel:
    """Lines at the end of a terminal, drawn over themselves."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._height = 0
        self._width = 0

    def draw(self, lines: list[list[Piece]], rows: list[list[Piece]], columns: int, height: int) -> None:
        """Write ``lines``, which stay, and ``rows`` below them, in place of those written last.

        A terminal that has become smaller has broken or moved the old rows in a way of its own: they stay then, and the
        new ones are written below them. Nothing of others is ever overwritten.
        """
        over = 0 if self._width > columns or self._height >= height else self._height
        self._output.panel([*lines, *rows], over)
        self._height = len(rows)
        self._width = max((sum(width(str(_text(piece))) for piece in row) for row in rows), default=0)


def _text(piece: Piece) -> str:
    return piece.text if isinstance(piece, Styled) else piece
