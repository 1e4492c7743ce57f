"""``pmagent log verify``: every check that can be made of a log, offline; writes nothing."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import click
import msgspec

from events.verify import Verification, verify_log
from pmagent.cli.frame import App, Command, format_option, pass_app
from pmagent.cli.output import Output, Styled
from pmagent.exitcodes import Exit
from pmagent.log.source import log_folder
from pmagent.when import sized, spoken


@click.command(cls=Command, example=["pmagent log verify", "pmagent log verify --decode ."])
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@click.option("--decode", is_flag=True, help="Decode each line, too, as strictly as a reader does.")
@format_option()
@pass_app
def verify(app: App, path: Path | None, decode: bool, format: str) -> int:
    """Check every byte of the log in PATH (a workspace, or a log's folder; default: this workspace), and every blob
    that it names, in the folder blobs beside it.

    Exit 0: intact. Exit 4: corrupt; the first bad event is named by file, byte offset and position.
    """
    folder = log_folder(path or app.workspace)
    begun = time.perf_counter()
    result = verify_log(str(folder), decode=decode, blobs=str(folder.parent / "blobs"))
    seconds = time.perf_counter() - begun
    if format == "json":
        app.output.document({"path": str(folder), **msgspec.to_builtins(result)})
    else:
        _screen(app.output, folder, result, seconds, f" {shlex.quote(str(path))}" if path else "")
    return Exit.DONE if result.ok else Exit.CORRUPT


def _screen(output: Output, folder: Path, result: Verification, seconds: float, argument: str) -> None:
    amount = f"{result.events:,} events, {sized(result.bytes)} in {result.segments} segment(s)"
    if result.finding is None:
        output.line(Styled("✓ intact", "green"), f": {amount}, checked in {spoken(seconds)}")
    else:
        found = result.finding
        where = f"{found.file}, byte {found.offset}, position {found.position}"
        output.line(Styled("✗ corrupt", "red"), f": {where}: {found.reason}")
        output.line(f"  intact before it: {amount}")
    output.line(f"  log       {result.log_id or 'unknown'}, in {folder}")
    tail = result.tail
    output.line(f"  tail      position {tail.position}, batch {tail.batch}, {tail.time or 'no time'}")
    output.line(f"  sum       {result.tail.sum}")
    if result.beyond is not None:
        found = result.beyond
        output.line(f"  beyond    {sized(result.beyond_bytes)} behind the durable end: being written, or a torn tail")
        output.line(f"            {found.file}, byte {found.offset}, position {found.position}: {found.reason}")
    if result.finding is not None and result.tail.position:
        output.note(
            Styled("hint:", "cyan"), f" what precedes it: pmagent log export --until {result.tail.position}{argument}; "
            "restore the rest from a copy of the log's folder",
        )
