"""``pmagent log list``: all logs of a database, as their holders say that they stand."""

from __future__ import annotations

import click
import msgspec

from pmagent.cli.frame import App, command
from pmagent.cli.output import Output
from pmagent.events.evidence import logs_listed
from pmagent.events.store import ListedLog
from pmagent.exitcodes import Exit
from pmagent.log.listed import said_by


@command("pmagent log list postgresql://viewer@db1/pmagent", reads=True)
@click.argument("database", required=False)
def list_logs(app: App, database: str | None, format: str) -> int:
    """List the logs of a DATABASE, or of the one in which this workspace's log lies: who holds each, how many stand by,
    its mode, what waits for a person, and its last event. No log is waited for: each holder has written that down."""
    found = logs_listed(app.workspace, database or "")
    document = {"logs": [{**msgspec.structs.asdict(one), "said": msgspec.to_builtins(said_by(one))} for one in found]}
    app.output.answer(format, document, lambda: _screen(app.output, found))
    return Exit.DONE


def _screen(output: Output, found: list[ListedLog]) -> None:
    for one in found:
        said = said_by(one) if one.live else None
        held = f"moved to {one.moved_to}" if one.moved_to else one.holder if one.live else "nobody holds it"
        output.line(f"{one.name:<24}  {(said and said.mode) or '-':<8}  event {one.position:,}  {held}")
        if said is not None:
            counts = f"{said.waiting} waiting, {said.alerts} other alerts, {said.running} running"
            output.line(f"  {counts}, {one.standbys} standing by{'; paused' if said.paused else ''}")
    if not found:
        output.line("it holds no log yet")
