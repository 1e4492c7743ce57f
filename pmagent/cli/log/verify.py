"""``pmagent log verify``: every check that can be made of a log, offline; writes nothing."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import click
import msgspec

from pmagent.actors.known import blob_check
from pmagent.cli.frame import App, command
from pmagent.cli.log.lines import blob_lines
from pmagent.cli.output import Output, Styled
from pmagent.events.store import LogStore, Verification
from pmagent.exitcodes import Exit
from pmagent.log.source import store_at
from pmagent.when import sized, spoken


@command("pmagent log verify", "pmagent log verify --decode .", reads=True)
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@click.option("--decode", is_flag=True, help="Decode each line, too, as strictly as a reader does.")
@click.option("--no-blobs", is_flag=True, help="Check the lines alone: of a log that was copied without its blobs.")
def verify(app: App, path: Path | None, decode: bool, no_blobs: bool, format: str) -> int:
    """Check every byte of the log in PATH (a workspace or a log folder; default: this workspace), and the content of
    every blob that its events name, in the folder blobs beside it.

    Exit 0: intact. Exit 4: corrupt. The first bad event is named by file, byte offset and position; a bad blob by file
    and the position of the event that names it. A log that is shorter than this user's registry knows, or is another
    chain, is corrupt, too. The result also says whether the log is trusted."""
    store = store_at(path or app.workspace)
    begun = time.perf_counter()
    blobs = None if no_blobs else blob_check(store.blobs())
    result = store.verify(decode=decode, blobs=blobs)
    seconds = time.perf_counter() - begun
    distrusted, gone = _distrust(app, store, path)
    if format == "json":
        document = {"ok": result.ok and not gone, "distrust": distrusted or None}
        app.output.document({"path": store.place, **msgspec.to_builtins(result), **document})
    else:
        _screen(app.output, store.place, result, seconds, f" {shlex.quote(str(path))}" if path else "")
        if distrusted:
            app.output.line(Styled("✗ not trusted", "red"), f": {distrusted}")
    return Exit.DONE if result.ok and not gone else Exit.CORRUPT


def _distrust(app: App, store: LogStore, path: Path | None) -> tuple[str, bool]:
    """Why the log is not trusted ("": it is), and whether that is because events are gone. A folder that is no
    workspace's own (a copy, an export) is only verified."""
    from pmagent.workspace.layout import Layout, workspace_of_log
    from pmagent.workspace.user_registry import EventsGone, LogMissing, LogOlder, distrust

    there = Layout((path or app.workspace).absolute())
    layout = there if there.evidence.database else workspace_of_log(Path(store.place))
    error = distrust(layout) if layout is not None else None
    return (str(error) if error is not None else ""), isinstance(error, EventsGone | LogMissing | LogOlder)


def _screen(output: Output, place: str, result: Verification, seconds: float, argument: str) -> None:
    amount = f"{result.events:,} events, {sized(result.bytes)} in {result.segments} segment(s)"
    only_blobs = result.finding is not None and result.finding.file.startswith("blobs/")
    if result.finding is None:
        output.line(Styled("✓ intact", "green"), f": {amount}, checked in {spoken(seconds)}")
    elif only_blobs:
        output.line(Styled("✗ corrupt", "red"), f": the lines are intact ({amount}), and not every blob is")
    else:
        found = result.finding
        where = f"{found.file}, byte {found.offset}, position {found.position}"
        output.line(Styled("✗ corrupt", "red"), f": {where}: {found.reason}")
        output.line(f"  intact before it: {amount}")
    if result.blobs is None:
        output.line("  blobs     not checked")
    else:
        blob_lines(output, result.blobs)
    output.line(f"  log       {result.log_id or 'unknown'}, in {place}")
    tail = result.tail
    output.line(f"  tail      position {tail.position}, batch {tail.batch}, {tail.time or 'no time'}")
    output.line(f"  sum       {result.tail.sum}")
    if result.beyond is not None:
        found = result.beyond
        output.line(f"  beyond    {sized(result.beyond_bytes)} behind the durable end: being written, or a torn tail")
        output.line(f"            {found.file}, byte {found.offset}, position {found.position}: {found.reason}")
    if only_blobs:
        mend = " restore these files from a copy of the folder of blobs; --no-blobs checks the lines alone"
        output.note(Styled("hint:", "cyan"), mend)
    elif result.finding is not None and result.tail.position:
        output.note(
            Styled("hint:", "cyan"), f" what precedes it: pmagent log export --until {result.tail.position}{argument}; "
            "restore the rest from a copy of the log's folder",
        )
