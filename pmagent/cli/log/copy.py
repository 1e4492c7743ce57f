"""``pmagent log copy``: moving a log between folders and databases, and backups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from pmagent.cli.frame import App, command
from pmagent.cli.output import Styled
from pmagent.events.errors import NotFound, PmagentError
from pmagent.events.evidence import log_at, log_in
from pmagent.events.store import is_address
from pmagent.exitcodes import Exit
from pmagent.log.source import store_at
from pmagent.when import sized

if TYPE_CHECKING:
    from pmagent.events.store import LogStore
    from pmagent.workspace.user_registry import KnownLog


@command(
    "pmagent log copy . 'postgresql://db1,db2,db3/pmagent?sslmode=verify-full#lab'",
    "pmagent log copy . /mnt/backup --backup",
)
@click.argument("source")
@click.argument("destination")
@click.option("--backup", is_flag=True, help="Leave SOURCE open; it may be written meanwhile.")
@click.option("--blobs", "kept", metavar="PLACE", default="", help="Where blobs lie in S3, for an address.")
@click.option("--one-server", is_flag=True, help="The database has no standby, and shall need none.")
def copy(app: App, source: str, destination: str, backup: bool, kept: str, one_server: bool, format: str) -> int:
    """Copy a log byte for byte from SOURCE (a workspace, a log's folder, or the address of a log in PostgreSQL) to
    DESTINATION (a folder, which gets log/ and blobs/, or an address), check the copy, and close SOURCE for good: nobody
    writes it any more. If it is cut off, SOURCE is still open, and the same command goes on.

    The blobs go along. Those of a log in PostgreSQL lie beside it, or at PLACE: s3://bucket/prefix."""
    from pmagent.actors.known import named_blobs
    from pmagent.events.copying import copy_log

    known = None if backup else _known(app)
    given, wanted = _source(app, source, kept, one_server), _destination(app, destination, kept, one_server)

    def moving() -> None:
        if known is not None:
            _know_there(app, known, given, wanted)

    found = copy_log(given, wanted, named_blobs(), backup=backup, moving=moving)
    document = {"source": given.place, "destination": wanted.place, "closed": not backup, **msgspec.to_builtins(found)}
    app.output.answer(format, document, lambda: _screen(app, document, found.bytes))
    return Exit.DONE


def _screen(app: App, document: dict[str, object], size: int) -> None:
    tail = document["tail"]
    assert isinstance(tail, dict)
    app.output.line(Styled("✓ copied", "green"), f": log {document['log_id']}, {document['events']:,} events written")
    app.output.line(f"  to        {document['destination']}: position {tail['position']}, {sized(size)}")
    app.output.line(f"  sum       {tail['sum']}")
    if document["closed"]:
        app.output.line(f"  closed    {document['source']}: nobody writes it any more")
        place = str(document["destination"])
        setting = f'log = "{place}"' if is_address(place) else f'log_dir = "{Path(place).parent}"'
        what = f" write {setting} under [storage] in .pmagent/config.toml, then: pmagent trust"
        app.output.note(Styled("next:", "cyan"), what)


def _source(app: App, text: str, kept: str, one_server: bool) -> LogStore:
    if is_address(text):
        return log_at(text, app.layout.blobs, replicated=not one_server, kept=kept)
    if not Path(text).is_dir():
        raise NotFound(f"there is no folder {text}", "give a workspace, a log's folder, or the address of a log")
    return store_at(Path(text))


def _destination(app: App, text: str, kept: str, one_server: bool) -> LogStore:
    if is_address(text):
        return log_at(text, app.layout.blobs, replicated=not one_server, kept=kept)
    folder = Path(text).absolute()
    if folder.is_relative_to(app.layout.folder):
        raise PmagentError(f"{folder} lies in {app.layout.folder}", "give a folder of its own")
    return log_in(folder / "log")


def _known(app: App) -> KnownLog | None:
    """The registry's entry of the workspace's log; None where there is none."""
    from pmagent.workspace.user_registry import Registry

    return Registry().log_of(app.workspace)


def _know_there(app: App, known: KnownLog, source: LogStore, destination: LogStore) -> None:
    """Let the registry know where the workspace's own log goes on, so that it is trusted there. It is asked of no
    other: a log that somebody else began stays a stranger."""
    from pmagent.workspace.user_registry import Registry

    found = source.identity()
    if (found.place, found.mark) == (known.folder, known.mark):
        there = destination.identity()
        Registry().note(app.workspace, msgspec.structs.replace(
            known, next_folder=there.place, next_device=there.mark[0], next_inode=there.mark[1]
        ))  # fmt: skip
