"""Files for other programs: shell completion, and the format file for lnav."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pmagent.cli.frame import App, command

if TYPE_CHECKING:
    from pmagent.jobs.kinds import Kind

SHELLS = ("bash", "zsh", "fish")
LNAV_FILE = "pmagent_log.json"


@command("pmagent completion bash", "pmagent completion zsh", format=None)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(app: App, shell: str) -> None:
    """Print the completion script of SHELL.

    bash: pmagent completion bash > ~/.local/share/bash-completion/completions/pmagent
    """
    from click.shell_completion import get_completion_class

    from pmagent.cli.app import program

    cls = get_completion_class(shell)
    assert cls is not None, shell
    made = cls(program, {}, "pmagent", "_PMAGENT_COMPLETE")
    app.output.raw((made.source_template % made.source_vars()).encode() + b"\n")


@command("pmagent lnav", format=None)
@click.option("--install", is_flag=True, help="Put it where lnav finds it, instead of printing it.")
def lnav(app: App, install: bool) -> None:
    """The format file with which the log viewer lnav reads .pmagent/data/log: colours, columns, filters, SQL."""
    content = (files("pmagent") / "data" / LNAV_FILE).read_bytes()
    if not install:
        app.output.raw(content)
        return
    from pmagent.events.atomic import write_atomic

    folder = _lnav_folder() / "formats" / "installed"
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / LNAV_FILE, content)
    app.output.line(f"installed: {folder / LNAV_FILE}")


def _lnav_folder() -> Path:
    """Where lnav keeps its settings: ~/.lnav if it exists or nothing else does, else under XDG_CONFIG_HOME."""
    old = Path.home() / ".lnav"
    configured = os.environ.get("XDG_CONFIG_HOME")
    new = (Path(configured) if configured else Path.home() / ".config") / "lnav"
    return old if old.is_dir() or not (configured or new.is_dir()) else new


def complete_types(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Event types that begin so."""
    from pmagent.log.summaries import known

    return [name for name in known() if name.startswith(incomplete)]


def complete_jobs(ctx: click.Context, _param: click.Parameter, incomplete: str, only: Sequence[Kind] = ()) -> list[str]:
    """Ids of the latest jobs (``only``: of these kinds) that begin so; none when there is no log."""
    from pmagent.events.errors import PmagentError
    from pmagent.jobs.catalogue import Catalogue
    from pmagent.jobs.registry import KINDS
    from pmagent.workspace.layout import Layout

    try:
        jobs = Catalogue(Layout(_workspace(ctx)))
        found = [job.job_id for kind in only or KINDS for job in jobs.listed(kind, 20).entries]
    except (PmagentError, OSError):
        return []
    return [job_id for job_id in found if job_id.startswith(incomplete.lower())]


def _workspace(ctx: click.Context) -> Path:
    app = ctx.find_object(App)
    from pmagent.workspace.layout import workspace_around

    named = (app.workspace_flag if app else None) or os.environ.get("PMAGENT_WORKSPACE")
    return Path(named) if named else workspace_around(Path.cwd())


def complete_actors(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Actors of the latest events that begin so; none when there is no log."""
    from pmagent.events.errors import PmagentError
    from pmagent.log.source import line_runs, store_at

    try:
        with closing(store_at(_workspace(ctx)).reader()) as storage:
            start = max(1, storage.tail().position - 2000)
            found = {event.actor for run, _ in line_runs(storage, start) for event in run}
    except (PmagentError, OSError):
        return []
    return sorted(name for name in found if name.startswith(incomplete) and name.isprintable())
