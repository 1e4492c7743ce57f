"""``pmagent init`` and ``pmagent kernel refresh``: the two commands that write surfaces."""

from __future__ import annotations

import click

from pmagent.cli.frame import App, Command, format_option, pass_app
from pmagent.cli.output import Styled
from pmagent.exitcodes import Exit


@click.command(cls=Command, example="pmagent init")
@format_option()
@pass_app
def init(app: App, format: str) -> int:
    """Make this git repository a workspace: write the kernel surfaces that are missing, and .pmagent/config.toml.

    Nothing that exists is touched.
    """
    from pmagent.workspace.surfaces import init_workspace

    created = init_workspace(app.workspace)
    if format == "json":
        app.output.document({"workspace": str(app.workspace), "created": created})
        return Exit.DONE
    for path in created:
        app.output.line(Styled("✓", "green"), f" {path}")
    if not created:
        app.output.line("nothing to do: everything is there")
    app.output.note("next: pmagent oa snapshot, or pmagent up and, in another shell, pmagent log tail -f")
    return Exit.DONE


@click.command(cls=Command, example="pmagent kernel refresh")
@format_option()
@pass_app
def refresh(app: App, format: str) -> int:
    """Recompute the kernel surfaces (branch, phase, built-in guards, health) and write each, atomically."""
    from pmagent.workspace.surfaces import refresh_surfaces

    written = refresh_surfaces(app.workspace)
    if format == "json":
        app.output.document({"workspace": str(app.workspace), "written": written})
        return Exit.DONE
    for path in written:
        app.output.line(Styled("✓", "green"), f" {path}")
    return Exit.DONE
