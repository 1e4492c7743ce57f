"""``pmagent init`` and ``pmagent kernel refresh``: the two commands that write surfaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from pmagent.cli.frame import App, Command, format_option, pass_app
from pmagent.cli.output import Styled
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.contracts.checks import CheckResult


@click.command(cls=Command, example="pmagent init")
@click.option("--new-log", is_flag=True, help="Begin a log, also where documents tell of one that is gone.")
@format_option()
@pass_app
def init(app: App, new_log: bool, format: str) -> int:
    """Make this git repository a workspace: write the missing kernel surfaces and .pmagent/config.toml.

    Existing files are not touched. This accepts the workspace's configuration; the powers of an existing one are shown
    (pmagent trust shows them again). --new-log begins a log at once: where STATE.json, jobs/, runs/ or sessions/ belong
    to a log that is gone, no other command begins one."""
    from pmagent.cli.trust_prompt import accept_as_is
    from pmagent.workspace.kernel_settings import PATH
    from pmagent.workspace.presence import begin_log
    from pmagent.workspace.surfaces import init_workspace

    found = any((app.workspace / name).exists() for name in (PATH, "orchestra.config.yaml"))
    created = init_workspace(app.workspace)
    accept_as_is(app.workspace.resolve(), app.output, always_shown=found)
    log_id = begin_log(app.layout) if new_log else None
    if format == "json":
        begun = {"log_id": log_id} if new_log else {}
        app.output.document({"workspace": str(app.workspace), "created": created, **begun})
        return Exit.DONE
    for path in created:
        app.output.line(Styled("✓", "green"), f" {path}")
    if new_log:
        app.output.line(Styled("✓", "green"), f" log {log_id}, in {app.layout.log}")
    elif not created:
        app.output.line("nothing to do: everything is there")
    app.output.note("next: pmagent oa snapshot, or pmagent up and, in another shell, pmagent log tail -f")
    return Exit.DONE


@click.command(cls=Command, example="pmagent kernel refresh")
@format_option()
@pass_app
def refresh(app: App, format: str) -> int:
    """Recompute the kernel surfaces (branch, phase, built-in guards, checks, health) and write each, atomically.

    The checks of [checks] in .pmagent/config.toml run first, in the read-only sandbox without network; each has to exit
    with 0. A failed check is written, and is no failure of this command. Exit 1 when one could not be run: it counts as
    failed."""
    from pmagent.workspace.surfaces import refresh_surfaces
    from pmagent.workspace.trust import require_accepted

    require_accepted(app.workspace.resolve())
    results = _checked(app)
    written = refresh_surfaces(app.workspace, results=results)
    if format == "json":
        checks = [{"name": one.name, "passed": one.passed, "ran": one.ran, "message": one.message} for one in results]
        app.output.document({"workspace": str(app.workspace), "written": written, "checks": checks})
    else:
        for result in results:
            mark = Styled("✓ passed", "green") if result.passed else Styled("✗ failed", "red")
            app.output.line(mark, f": {result.name}: {result.message}")
        for path in written:
            app.output.line(Styled("✓", "green"), f" {path}")
    return Exit.DONE if all(result.ran for result in results) else Exit.NO


def _checked(app: App) -> Sequence[CheckResult]:
    """The results of the configured checks; what kept any from being run is told once."""
    configured = app.resolved.checks
    if not configured:
        return []
    from pmagent.workspace.ask_checks import run_configured

    seconds = app.resolved.settings.kernel.check_seconds
    what = "1 configured check" if len(configured) == 1 else f"{len(configured)} configured checks"
    app.output.note(f"running {what}, for {seconds:g} s each at most")
    results = run_configured(app.resolved)
    for message, mend in dict.fromkeys((one.message, one.mend) for one in results if not one.ran):
        concerned = ", ".join(one.name for one in results if not one.ran and one.message == message)
        app.output.note(Styled("error:", "red"), f" {concerned}: {message}")
        if mend:
            app.output.note(Styled("hint:", "cyan"), f" {mend}")
    return results
