"""``pmagent init`` and ``pmagent kernel refresh``: the two commands that write surfaces."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from pmagent.cli.frame import App, command
from pmagent.cli.inputs import from_here
from pmagent.cli.output import Styled
from pmagent.exitcodes import Exit

if TYPE_CHECKING:
    from pmagent.contracts.checks import CheckResult


_MEANING: Final = {
    ".pmagent/config.toml": "settings: phase, checks, where the log lies",
    "orchestra.config.yaml": "what runs may start, read and write",
    "plan.yaml": "a plan that runs the tests found here",
    "share/PM_BOOTSTRAP_STATE.json": "kernel surface: branch, phase, health",
    "share/SSOT_SURFACE_V17.json": "kernel surface: the phase that counts",
    "share/REALITY_GREEN_SUMMARY.json": "kernel surface: the checks and whether all passed",
    "share/HANDOFF_KERNEL.json": "kernel surface: a mode that somebody declares",
    "share/oa/CONTEXT.json": "kernel surface: the current task's context",
}
"""Path -> what the file is for."""

_OFFER: Final = "ignore them?"


@command("pmagent init", "pmagent init --ignore")
@click.option("--ignore", is_flag=True, help="List the folders that pmagent computes in .git/info/exclude.")
@click.option("--minimal", is_flag=True, help="Without kernel surfaces: no mode is computed.")
@click.option("--new-log", is_flag=True, help="Begin a log, also where documents tell of one that is gone.")
def init(app: App, ignore: bool, minimal: bool, new_log: bool, format: str) -> int:
    """Make this git repository a workspace: write settings, a plan for the tests found here, and kernel surfaces.

    Existing files are not touched. The folders that pmagent computes (runs/, jobs/, …) are offered to git as ignored:
    in .git/info/exclude, which is yours alone; .gitignore is the project's. This accepts the workspace's configuration;
    the powers of an existing one are shown (pmagent trust shows them again). --new-log begins a log at once: where
    STATE.json, jobs/, runs/ or sessions/ belong to a log that is gone, no other command begins one."""
    from pmagent.cli.trust_prompt import accept_as_is
    from pmagent.workspace.kernel_settings import PATH
    from pmagent.workspace.presence import begin_log, log_gone
    from pmagent.workspace.starter import CONFIG, PLAN, starter
    from pmagent.workspace.surfaces import init_workspace, require_place
    from pmagent.workspace.user_registry import distrust

    require_place(app.workspace)
    present = [name for name in (PATH, CONFIG, PLAN) if os.path.lexists(app.workspace / name)]
    first = starter(app.workspace, app.environ)
    created = init_workspace(app.workspace, files=first.files, minimal=minimal)
    accept_as_is(app.workspace.resolve(), app.output, always_shown=any(name != PLAN for name in present))
    log_id = begin_log(app.layout) if new_log else None
    if format == "json":
        begun = {"log_id": log_id} if new_log else {}
        offered = _ignored(app, asked=ignore, answerable=False)
        app.output.document(
            {"workspace": str(app.workspace), "created": created, "present": present,
             "lacking": [{"tool": one.tool, "found": one.found, "mend": one.lack} for one in first.lacking],
             **offered, **begun}
        )  # fmt: skip
        return Exit.DONE
    gone = None if new_log else log_gone(app.layout) or distrust(app.layout)
    width = max(map(len, created), default=0)
    for path in created:
        meaning = _MEANING.get(path, "")
        app.output.line(Styled("✓", "green"), f" {path:<{width}}  {meaning}" if meaning else f" {path}")
    for one in first.lacking:
        app.output.note(
            Styled("warning:", "yellow"), f" {one.found} shows tests for {one.tool}, which {PLAN} does not run yet"
        )
        app.output.note(Styled("hint:", "cyan"), f" {one.lack}, and take the task out of its comment")
    if created and present:
        app.output.line(f"left as they are: {', '.join(present)}")
    if new_log:
        app.output.line(Styled("✓", "green"), f" log {log_id}, in {app.layout.store.place}")
    ignored = _ignored(app, asked=ignore, answerable=True)["ignored"]
    if not created and not new_log and not ignored:
        app.output.line("nothing to do: everything is there")
    if gone is not None:
        app.output.note(Styled("warning:", "yellow"), f" {gone.message}")
        app.output.note(Styled("hint:", "cyan"), f" {gone.hint}")
        return Exit.DONE
    app.output.note(f'next: pmagent run "run the tests" --plan {from_here(app.workspace, PLAN)}; pmagent status')
    return Exit.DONE


def _ignored(app: App, *, asked: bool, answerable: bool) -> dict[str, object]:
    """List the computed folders among the files that git ignores, where that is ``asked`` for or answered with yes."""
    from pmagent.cli.inputs import can_answer, confirmed
    from pmagent.workspace import git
    from pmagent.workspace.starter import made_folders

    lines = git.not_ignored(app.workspace, made_folders(app.workspace))
    if lines and not asked and answerable:
        app.output.note(f"not ignored by git, and computed by pmagent: {'  '.join(lines)}")
        if can_answer(app.output):
            asked = confirmed(app.output, _OFFER, "--ignore")
        else:
            app.output.note("pmagent init --ignore lists them in .git/info/exclude")
    if lines and asked:
        path = git.ignore(app.workspace, lines)
        app.output.note(Styled("✓", "green"), f" ignored by git: {'  '.join(lines)} ({path})")
    return {"ignore": lines, "ignored": bool(lines) and asked}


@command("pmagent kernel refresh")
def refresh(app: App, format: str) -> int:
    """Recompute the kernel surfaces (branch, phase, built-in guards, checks, health) and write each, atomically.

    The checks of [checks] in .pmagent/config.toml run first, in the read-only sandbox without network; each has to exit
    with 0. A failed check is written, and is no failure of this command. Exit 1 when one could not be run: it counts as
    failed. Where another machine holds the log, its checks run, and its surfaces are written: they count."""
    from pmagent.service.client import held_elsewhere
    from pmagent.workspace.surfaces import refresh_surfaces
    from pmagent.workspace.trust import require_accepted

    require_accepted(app.workspace.resolve())
    if held_elsewhere(app.layout):
        results, written = _refreshed_there(app)
    else:
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


def _refreshed_there(app: App) -> tuple[Sequence[CheckResult], list[str]]:
    """The results of the checks of the machine that holds the log, and the surfaces that it has written."""
    import msgspec

    from pmagent.contracts.checks import CheckResult
    from pmagent.service.operations import call

    app.output.note(f"another machine holds the log, and refreshes its surfaces: {app.layout.store.holder().note}")
    answer = call(app.workspace, "kernel.refresh", {}, app.output.note).document
    results = msgspec.convert(answer["results"], list[CheckResult])
    _tell_not_run(app, results)
    return results, answer["written"]


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
    _tell_not_run(app, results)
    return results


def _tell_not_run(app: App, results: Sequence[CheckResult]) -> None:
    for message, mend in dict.fromkeys((one.message, one.mend) for one in results if not one.ran):
        concerned = ", ".join(one.name for one in results if not one.ran and one.message == message)
        app.output.note(Styled("error:", "red"), f" {concerned}: {message}")
        if mend:
            app.output.note(Styled("hint:", "cyan"), f" {mend}")
