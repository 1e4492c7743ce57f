"""``pmagent log tail``: the latest events, and live from there on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final

import click

from pmagent.cli.frame import App, command, format_option
from pmagent.cli.log.lines import event_line
from pmagent.cli.output import Output, PipeClosed
from pmagent.cli.shell import complete_actors, complete_types
from pmagent.events.event import StoredEvent
from pmagent.events.reader import CAUGHT_UP, Follower
from pmagent.events.storage import StorageReader
from pmagent.exitcodes import Exit
from pmagent.log.names import TaskNames
from pmagent.log.query import Query, compiled, globs
from pmagent.log.ranges import Range, range_of, start_of_last
from pmagent.log.source import Tapped, line_runs, store_at
from pmagent.log.summaries import is_bookkeeping
from pmagent.when import duration

LOOK_SECONDS: Final = 0.05
"""How often a follower looks whether anybody still reads what it shows."""


@command(
    "pmagent log tail", "pmagent log tail -n 5 --type 'oa.*' --type kernel.mode_decided",
    "pmagent log tail --since 10m kind=decision data.mode=NORMAL", "pmagent log tail --after 1 --format json",
    format=format_option(lines=True), reads=True,
)
@click.argument("match", nargs=-1, metavar="[FIELD=VALUE]...")
@click.option("-n", "--lines", metavar="N", help="The last N that match, or 'all' [default: 20; all after a start].")
@click.option("-f", "--follow", is_flag=True, help="Follow new events, until Ctrl-C.")
@click.option("--type", "types", multiple=True, metavar="GLOB", shell_complete=complete_types, help="Only these types.")
@click.option("--exclude", multiple=True, metavar="GLOB", shell_complete=complete_types, help="Not these types.")
@click.option("--actor", "actors", multiple=True, metavar="NAME", shell_complete=complete_actors, help="Only by these.")
@click.option("--correlation", "correlations", multiple=True, metavar="ID", help="Only of these runs or sessions.")
@click.option("--since", metavar="TIME", help="From then on: 10m, 14:30, yesterday, ISO 8601, pos:1200.")
@click.option("--until", metavar="TIME", help="Up to then, or up to and with pos:N.")
@click.option("--after", type=click.IntRange(min=0), metavar="POSITION", help="From the next position on; resumes.")
@click.option("--grep", metavar="RE", help="Only events whose text or data matches the expression.")
@click.option("--exit-on", metavar="GLOB", help="End with 0 when such a type is shown, 1 if none is; -f -n 0 waits.")
@click.option("--all", "everything", is_flag=True, help="Also what only tidies up; JSON always has it.")
@click.option("--timeout", metavar="DURATION", help="Follow for this time at most; with --exit-on, end with 6.")
@click.option("--show-cursor", is_flag=True, help="Show at the end, on stderr, where to resume.")
def tail(
    app: App, match: Sequence[str], lines: str | None, follow: bool, types: Sequence[str], exclude: Sequence[str],
    actors: Sequence[str], correlations: Sequence[str], since: str | None, until: str | None, after: int | None,
    grep: str | None, exit_on: str | None, everything: bool, timeout: str | None, show_cursor: bool, format: str,
) -> int:
    """The latest events, one a line; with -f, live from there on.

    Needs no daemon. Different filters must all hold; of one filter given several times, one must. Events that only tidy
    up after a run are left out, unless --all, --type, --grep or a FIELD asks for them.
    """
    query = Query(
        types=types, excluded=exclude, actors=actors, correlations=correlations, fields=match, grep=grep or ""
    )
    compiled(query)
    count = _count(lines, app, since is not None or after is not None)
    seconds = duration(timeout) if timeout is not None else None
    store = store_at(app.workspace)
    with closing(store.reader()) as storage:
        told = TaskNames(storage, store.blobs()).summary
        matches = compiled(query, told)
        if format == "text" and not (everything or types or match or grep or exit_on):
            matches = _telling(matches)
        span = range_of(storage, since, until, after or 0, app.output.now)
        start = start_of_last(storage, span, lambda run: [*filter(matches, run)], count)
        show = _Show(app.output, matches, span, told, globs([exit_on]) if exit_on else None, format == "json")
        show.cursor = start - 1
        if format == "text" and app.output.is_seen:
            app.output.note(f"— times are {app.output.zone} —")
        try:
            look = app.note_daemon if follow else None
            code = _run(show, storage, start, look, seconds=seconds, exiting=exit_on is not None)
        except KeyboardInterrupt:
            app.output.note(f"— stopped at {show.cursor}; go on with: pmagent log tail --after {show.cursor} —")
            return Exit.INTERRUPTED
        if show_cursor:
            app.output.note(f"— cursor {show.cursor} —")
        return code


def _telling(matches: Callable[[StoredEvent], bool]) -> Callable[[StoredEvent], bool]:
    return lambda event: matches(event) and not is_bookkeeping(event)


def _count(lines: str | None, app: App, started: bool) -> int | None:
    """How many at most; None: all."""
    if lines is None:
        return None if started else app.resolved.settings.cli.tail_lines
    if lines == "all":
        return None
    if not lines.isdigit():
        raise click.BadParameter("a number or 'all'", param_hint="--lines")
    return int(lines)


class _Show:
    """Shows the events that are wanted; ``cursor`` is the last position it has seen."""

    def __init__(
        self, output: Output, matches: Callable[[StoredEvent], bool], span: Range,
        summary: Callable[[StoredEvent], str], exit_on: Any, as_json: bool,
    ) -> None:
        self.output = output
        self._matches = matches
        self._span = span
        self._summary = summary
        self._exit_on = exit_on
        self._json = as_json
        self.cursor = 0
        self.ended = False
        self.seen = False

    def run(self, run: Sequence[StoredEvent], tap: Tapped) -> None:
        """Show what is wanted of a run; sets ``ended`` when nothing after it can be."""
        wanted = []
        for index, event in enumerate(run):
            if self._beyond(event):
                self.ended = True
                break
            self.cursor = event.position
            if self._matches(event):
                wanted.append(index)
                if self._exit_on is not None and self._exit_on.match(event.type):
                    self.seen = self.ended = True
                    break
        if self._json and wanted:
            lines = tap.lines(wanted[-1] + 1)
            self.output.raw(b"".join(lines[index] + b"\n" for index in wanted))
        else:
            for index in wanted:
                self.output.line(*event_line(run[index], self.output, self._summary))
        self.output.flush()

    def _beyond(self, event: StoredEvent) -> bool:
        if self._span.stop is not None and event.position > self._span.stop:
            return True
        return bool(self._span.until) and event.time >= self._span.until


def _run(
    show: _Show, storage: StorageReader, start: int, look: Callable[[], None] | None, *, seconds: float | None,
    exiting: bool,
) -> int:
    if look is None:
        for run, tap in line_runs(storage, start):
            show.run(run, tap)
            if show.ended:
                break
        return Exit.NO if exiting and not show.seen else Exit.DONE
    deadline = time.monotonic() + seconds if seconds is not None else None
    for run, tap in _live(show, storage, start, deadline, look):
        show.run(run, tap)
        if show.ended:
            return Exit.NO if exiting and not show.seen else Exit.DONE
    return Exit.TIMED_OUT if exiting else Exit.DONE


def _live(
    show: _Show, storage: StorageReader, start: int, deadline: float | None, look: Callable[[], None]
) -> Iterator[tuple[Sequence[StoredEvent], Tapped]]:
    """Runs as they become durable; says once when it has caught up; ends at the deadline.

    Raises PipeClosed when nobody reads us any more: there may be no next event to notice it by.
    """
    output = show.output
    tap = Tapped(storage)
    follower = Follower(tap, start)

    def wait() -> bool:
        left = deadline - time.monotonic() if deadline is not None else LOOK_SECONDS
        if left <= 0:
            return False
        if output.reader_gone():
            raise PipeClosed
        look()
        storage.changes(follower.position - 1, min(left, LOOK_SECONDS))
        return True

    for found in follower.follow(wait):
        if found is CAUGHT_UP:
            output.note(f"— caught up at {show.cursor} —")
        elif not isinstance(found, type(CAUGHT_UP)):
            yield found, tap
