"""``pmagent worker``: attempts of runs of other hosts, made on this one."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from pmagent.cli.frame import App, command
from pmagent.cli.messages import log_through
from pmagent.cli.output import Styled
from pmagent.exitcodes import Exit


@command("pmagent worker --join postgresql://hands@db1,db2/pmagent?sslmode=verify-full", "pmagent worker check")
@click.argument("what", type=click.Choice(["run", "check"]), default="run")
@click.option("--join", metavar="DATABASE", default="", help="The database of the logs; else the file names it.")
@click.option(
    "--config", type=click.Path(path_type=Path), default=Path("worker.toml"), show_default=True,
    help="The permissions of this host.",
)  # fmt: skip
def worker(app: App, what: str, join: str, config: Path, format: str) -> int:
    """Take attempts of tasks from the database that holds their logs, make each in a sandbox here, and report. The file
    worker.toml says of which logs, with which programs, paths and hosts, and how large; nothing else is permitted. With
    a table [line] it carries the line of the PLA's device that is plugged in here. Ends at SIGTERM.

    check: look whether it could work, and do nothing."""
    from pmagent.workers.settings import read_settings
    from pmagent.workers.worker import check, serve

    settings = read_settings(config, join)
    if what == "check":
        check(settings)
        document = {"config": str(config), **msgspec.to_builtins(settings)}
        takes = f"takes attempts of {', '.join(settings.logs)}, {settings.capacity} at once" if settings.tools else ""
        line = f"carries the PLA's line for {', '.join(settings.logs)}" if settings.line is not None else ""
        text = f": {settings.name} {' and '.join(filter(None, (takes, line)))}"
        app.output.answer(format, document, lambda: app.output.line(Styled("✓ it could work", "green"), text))
        return Exit.DONE
    log_through(app.output)
    serve(settings)
    return Exit.DONE
