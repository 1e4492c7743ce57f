"""``pmagent log export``: lines byte for byte, also from a corrupt log, up to the first bad event."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click

from pmagent.cli.frame import App, command
from pmagent.cli.output import write_file
from pmagent.events.storage import StorageReader
from pmagent.exitcodes import Exit
from pmagent.log.source import line_runs, store_at
from pmagent.when import sized


@command("pmagent log export --until 2", "pmagent log export --from 1 --until 3 -o events.jsonl", format=None)
@click.argument("path", type=click.Path(exists=True, file_okay=False, path_type=Path), required=False)
@click.option("--from", "first", type=click.IntRange(min=1), default=1, metavar="POSITION", help="From here.")
@click.option("--until", type=click.IntRange(min=0), metavar="POSITION", help="Up to here [default: all].")
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False, path_type=Path), help="Into this file.")
def export(app: App, path: Path | None, first: int, until: int | None, file: Path | None) -> int:
    """The stored lines, unchanged: JSON, one event a line.

    Every line is checked before it is written. At the first bad one the command ends with exit code 4; the lines before
    it have been exported."""
    with closing(store_at(path or app.workspace).reader()) as storage:
        chunks = _chunks(storage, first, until)
        if file is None:
            for chunk in chunks:
                app.output.raw(chunk)
        else:
            size = write_file(file, chunks)
            app.output.note(f"{sized(size)} written to {file}")
    return Exit.DONE


def _chunks(storage: StorageReader, first: int, until: int | None) -> Iterator[bytes]:
    if until is None or until >= first:
        for run, tap in line_runs(storage, first, until):
            yield tap.run_bytes(len(run))
