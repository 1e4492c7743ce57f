"""``pmagent logs``: what the tasks of a run wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import click

from pmagent.cli.frame import App, command
from pmagent.cli.inputs import id_prefix
from pmagent.cli.output import Output, PipeClosed, Styled
from pmagent.cli.shell import complete_jobs
from pmagent.contracts.orchestra_events import Captured, RunRequested, TaskExited
from pmagent.contracts.payload import typed
from pmagent.events.event import Event
from pmagent.events.reader import Follower, Progress, event_at
from pmagent.exitcodes import Exit
from pmagent.jobs.catalogue import ALL, Catalogue
from pmagent.jobs.history import Jobs, opened
from pmagent.jobs.kinds import RUNS
from pmagent.projections.views.runs import Run
from pmagent.when import sized, spoken

LOOK_SECONDS: Final = 0.05
"""How often a follower looks whether anybody still reads what it shows."""


class Ended(NamedTuple):
    """An attempt that ended, by the name of its task."""

    name: str
    exited: TaskExited

    @property
    def failed(self) -> bool:
        """Whether its program did not exit with 0."""
        return self.exited.exit_code != 0

    @property
    def how(self) -> str:
        """How its program ended, for people."""
        exited = self.exited
        end = f"exit code {exited.exit_code}" if exited.signal is None else f"signal {exited.signal}"
        return f"{end}, {spoken(exited.duration_ms / 1000)}{f', killed: {exited.exceeded}' if exited.exceeded else ''}"


@command("pmagent logs 5b0c7a52", "pmagent logs 5b0c7a52 history", reads=True)
@click.argument("run_id", shell_complete=partial(complete_jobs, only=[RUNS]))
@click.argument("task", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as attempts end, until the run is over.")
@click.option("--failed", is_flag=True, help="Only attempts that failed.")
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Only the attempt N [default: a task's last].")
@click.option("--stream", type=click.Choice(["stdout", "stderr"]), help="Only this one.")
def logs(
    app: App, run_id: str, task: str | None, follow: bool, failed: bool, attempt: int | None, stream: str | None,
    format: str,
) -> int:
    """The output of a run's tasks, or of TASK: its name, or the beginning of its id.

    RUN_ID may be the beginning of an id. One stream of one task goes to a pipe byte for byte. With -f, every attempt is
    shown when it has ended.
    """
    if follow and format == "json":
        raise click.UsageError("--follow shows text: leave it out, or --format json")
    entry = Catalogue(app.layout, kept=ALL, checks=True).prefixed([RUNS], id_prefix(run_id, "RUN_ID"), ALL)
    entry.require_kept()
    streams = [stream] if stream else ["stdout", "stderr"]
    with opened(app.layout) as jobs, app.output.paged(wanted=app.pager and not follow and format == "text"):
        shown = _Shown(app.output, jobs, streams, bare=task is not None and stream is not None)
        if follow:
            for ended in _attempts(jobs, entry.position, task, app, follow=True):
                if (attempt in (None, ended.exited.attempt)) and (ended.failed or not failed):
                    shown.text(ended)
                    app.output.flush()
            return Exit.DONE
        last: dict[str, Ended] = {}
        for ended in _attempts(jobs, entry.position, task, app, follow=False):
            if attempt in (None, ended.exited.attempt):
                last[ended.exited.task_id] = ended
        found = [ended for ended in last.values() if ended.failed or not failed]
        if format == "json":
            app.output.document({"run_id": entry.job_id, "outputs": [shown.document(ended) for ended in found]})
            return Exit.DONE
        for ended in found:
            shown.text(ended)
        asked: RunRequested = jobs.at(entry.position).data
        if asked.earlier is not None and (task in asked.done if task is not None else asked.done):
            earlier = asked.earlier.run_id[:8]
            app.output.note(f"taken from run {earlier}: {', '.join(asked.done)}; pmagent logs {earlier} shows them")
        elif not found:
            app.output.note("nothing has been written: no attempt has ended that was asked for")
    return Exit.DONE


def show_alone(app: App, run_id: str) -> None:
    """Write what the one program of a run wrote: its stdout to stdout, byte for byte where that is piped, and its
    stderr to stderr."""
    entry = Catalogue(app.layout, kept=ALL, checks=True).prefixed([RUNS], run_id, ALL)
    with opened(app.layout) as jobs:
        attempts = list(_attempts(jobs, entry.position, None, app, follow=False))
        for ended in attempts[-1:]:
            _Shown(app.output, jobs, ["stdout"], bare=True).text(ended)
            app.output.flush()
            stderr = _Shown(app.output, jobs, ["stderr"], bare=True).content(ended.exited.stderr)
            for line in stderr.decode(errors="replace").splitlines():
                app.output.note(line)


class _Shown:
    """Shows the output of attempts. ``bare``: without headings, and byte for byte where it is piped."""

    def __init__(self, output: Output, jobs: Jobs, streams: list[str], *, bare: bool) -> None:
        self._output = output
        self._jobs = jobs
        self._streams = streams
        self._bare = bare

    def text(self, ended: Ended) -> None:
        """For people."""
        output = self._output
        if not self._bare:
            style = "red" if ended.failed else "green"
            output.line(Styled(f"── {ended.name}, attempt {ended.exited.attempt}: {ended.how}", style))
        for name in self._streams:
            captured: Captured = getattr(ended.exited, name)
            content = self.content(captured)
            if self._bare and not output.is_seen:
                output.raw(content)
            elif content:
                if name == "stderr" and not self._bare:
                    output.line(Styled("── stderr", "dim"))
                output.block(content.decode(errors="replace").removesuffix("\n"))
            if captured.cut:
                kept = f"{sized(captured.size_bytes)} of {sized(captured.total_bytes)} were kept"
                missing = f"{sized(captured.gap_bytes)} of {sized(captured.total_bytes)} are missing"
                what = f"{missing}, at byte {captured.gap_at}" if captured.gap_bytes else kept
                output.note(Styled("note:", "yellow"), f" {ended.name}: {name} was cut, {what}")

    def document(self, ended: Ended) -> dict[str, Any]:
        """For programs."""
        exited = ended.exited
        made = {
            "task": ended.name, "task_id": exited.task_id, "attempt": exited.attempt, "exit_code": exited.exit_code,
            "signal": exited.signal, "duration_ms": exited.duration_ms,
        }  # fmt: skip
        for name in self._streams:
            captured: Captured = getattr(exited, name)
            text = self.content(captured).decode(errors="replace")
            made[name] = {
                "text": text, "total_bytes": captured.total_bytes, "cut": captured.cut, "gap_at": captured.gap_at,
                "gap_bytes": captured.gap_bytes,
            }
        return made

    def content(self, captured: Captured) -> bytes:
        """The part of a stream that was kept."""
        return self._jobs.blobs.get(captured.sha256) if captured.size_bytes else b""


def _attempts(jobs: Jobs, requested: int, task: str | None, app: App, *, follow: bool) -> Iterator[Ended]:
    """The attempts that have ended, in the log's order; of ``task`` alone, where one is named. Raises UsageError at the
    end for a task that no plan of the run has."""

    def wait() -> bool:
        if follow and app.output.reader_gone():
            raise PipeClosed
        if follow:
            app.note_daemon()
            jobs.storage.changes(follower.position - 1, LOOK_SECONDS)
        return follow

    follower = Follower(jobs.storage, requested + 1)
    run, names = None, dict[str, str]()
    for view, event in _views(jobs, requested, follower, wait):
        if run is None or view.plan is not run.plan:
            names |= {planned.task_id: planned.name for planned in view.planned_tasks}
        run = view
        if isinstance(event.data, TaskExited):
            name = names.get(event.data.task_id, event.data.task_id)
            if task is None or task == name or event.data.task_id.startswith(task):
                yield Ended(name, event.data)
    if task is not None and not any(task == name or task_id.startswith(task) for task_id, name in names.items()):
        raise click.UsageError(f"the run has no task {task!r}; it has: {', '.join(sorted(set(names.values())))}")


def _views(jobs: Jobs, requested: int, follower: Follower, wait: Callable[[], bool]) -> Iterator[tuple[Run, Event]]:
    """The run after each of its events, until it is over or ``wait`` ends the waiting for more."""
    first = event_at(jobs.storage, requested)
    run: Run = RUNS.begun(typed(first, jobs.blobs), first.sum)
    for found in follower.follow(wait):
        for stored in () if isinstance(found, Progress) else found:
            if stored.correlation == first.correlation:
                event = typed(stored, jobs.blobs)
                run = RUNS.evolved(run, event, stored.sum)
                yield run, event
                if run.over:
                    return
