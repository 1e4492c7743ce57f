"""``pmagent run``: have a task done by tools in sandboxes, and watch (docs/design.md §14)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import click

from pmagent.actors.oa.policy import CARE, WORK
from pmagent.cli.frame import App, Command, format_option, pass_app, request_option
from pmagent.cli.inputs import STDIN, id_prefix, job_id, source_from
from pmagent.cli.output import Styled
from pmagent.cli.shell import complete_jobs
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import RUNS

if TYPE_CHECKING:
    from pmagent.contracts.orchestra_events import RunRequested

_OWN: Final = "orchestra.config.yaml"


@click.command(
    cls=Command,
    example=[
        "pmagent run 'Look around' --plan plan.yaml",
        "pmagent run 'Look around' --plan plan.yaml --plan-only",
        "pmagent run 'Look around' --plan plan.yaml --dry-run --format json",
        "pmagent run 'Look around' --plan plan.yaml --detach",
        "pmagent run --follow 5b0c7a52",
    ],
)
@click.argument("intent", required=False)
@click.option("--plan", metavar="FILE", help="The plan, JSON or YAML; - is stdin [default: a planner makes it].")
@click.option("--plan-only", is_flag=True, help="Plan, show the order, run nothing.")
@click.option("--dry-run", is_flag=True, help="Decide everything, but let a simulated tool answer: nothing is started.")
@click.option("--concurrency", type=int, metavar="N", help="Tasks at once [default: concurrency.max_workers].")
@click.option("--retries", type=int, metavar="N", help="Further attempts of a task [default: retries.max].")
@click.option("--replan", type=int, default=0, metavar="N", help="Plan failed tasks anew, so often at most.")
@click.option("--out", metavar="DIR", help="The parent of the runs' folders [default: paths.runs].")
@click.option("--config", metavar="FILE", help=f"The run's configuration [default: the workspace's {_OWN}].")
@click.option("--action", type=click.Choice([*WORK, *CARE]), default="feature_work", show_default=True,
              help="The action class that the OA must permit.")
@click.option("--detach", is_flag=True, help="Leave it to the daemon, and print the run's id.")
@click.option("--follow", metavar="RUN_ID", shell_complete=partial(complete_jobs, only=[RUNS]),
              help="Show a run that goes on already, to its end; Ctrl-C leaves it.")
@request_option()
@format_option()
@pass_app
def run(
    app: App, intent: str | None, plan: str | None, plan_only: bool, dry_run: bool, concurrency: int | None,
    retries: int | None, replan: int, out: str | None, config: str | None, action: str, detach: bool,
    follow: str | None, request: str | None, format: str,
) -> int:
    """Have INTENT done by the tasks of a plan, each a tool in a sandbox, in the order of their dependencies.

    Progress goes to stderr. Ctrl-C ends the run in order: its tasks are stopped, its documents written. Exit 0: every
    task is done. 1: some failed, or the run was refused, cancelled or stopped. 2: its configuration or plan is wrong.
    6: a time limit, or the daemon took it and does not answer. 7: a forbidden wish or act. `pmagent runs` shows the
    outcome."""
    if follow is not None:
        if intent is not None or detach or request is not None or plan is not None or config is not None:
            raise click.UsageError("--follow shows a run that was asked for before: give its id alone")
        return _follow(app, follow, format)
    if intent is None:
        raise click.UsageError("Missing argument 'INTENT'.")
    _check_flags(plan=plan, config=config, plan_only=plan_only, dry_run=dry_run, replan=replan, detach=detach)
    from pmagent.actors.orchestra.planning.plan import BYTES_MAX
    from pmagent.orchestra.request import RunOptions, as_request, warnings_of

    options = RunOptions(
        intent=intent, config=source_from(config, BYTES_MAX, "it has to hold a configuration"),
        plan=source_from(plan, BYTES_MAX, "it has to hold a plan"),
        concurrency=concurrency, retries=retries, replan=replan, out=out, action=action, plan_only=plan_only,
        dry_run=dry_run,
    )
    asked = as_request(options, app.workspace, job_id(request))
    if options.config is not None:
        _check_given(app, asked, options.config.where)
    for warning in warnings_of(asked.config):
        app.output.note(Styled("warning:", "yellow"), f" {warning}")
    return _run(app, asked, format, detach=detach)


def _check_given(app: App, asked: RunRequested, where: str) -> None:
    """A configuration that the command names is the workspace's no more than a plan is; what it lets be done is
    accepted all the same. Raises NotAccepted."""
    from pmagent.workspace.trust import accept_also, require_accepted, require_covers, within_run

    workspace = app.workspace.resolve()
    if app.trusting:
        accept_also(workspace, within_run(asked.config, workspace))
    require_accepted(workspace)
    require_covers(workspace, asked.config, where)


def _check_flags(
    *, plan: str | None, config: str | None, plan_only: bool, dry_run: bool, replan: int, detach: bool
) -> None:
    """Raises UsageError for flags that contradict each other."""
    if plan == STDIN and config == STDIN:
        raise click.UsageError("--plan and --config cannot both be stdin")
    against = {"--dry-run": dry_run, "--replan": replan > 0, "--detach": detach}
    if plan_only and any(against.values()):
        named = next(name for name, given in against.items() if given)
        raise click.UsageError(f"--plan-only runs nothing, so {named} has no meaning with it")


@click.command(cls=Command, example=["pmagent rerun 5b0c7a52", "pmagent rerun 5b0c7a52 --failed"])
@click.argument("run_id", shell_complete=partial(complete_jobs, only=[RUNS]))
@click.option("--failed", is_flag=True, help="Only tasks that are not done; the results of the others are taken over.")
@click.option("--detach", is_flag=True, help="Leave it to the daemon, and print the new run's id.")
@request_option()
@format_option()
@pass_app
def rerun(app: App, run_id: str, failed: bool, detach: bool, request: str | None, format: str) -> int:
    """Repeat a run that is over: a new run by its recorded plan, configuration and action class.

    RUN_ID may be the beginning of an id. With --failed, tasks that are done stay done, and what they have left is read
    by the tasks that wait for them. Exit codes are those of pmagent run; 1 also where nothing can be repeated."""
    from pmagent.jobs.catalogue import ALL, Catalogue
    from pmagent.jobs.history import opened
    from pmagent.orchestra.repeating import repeated

    entry = Catalogue(app.layout, kept=ALL, checks=True).prefixed([RUNS], id_prefix(run_id, "RUN_ID"), ALL)
    with opened(app.layout) as jobs:
        asked = repeated(jobs, entry.position, job_id(request), failed=failed)
    return _run(app, asked, format, detach=detach)


def _follow(app: App, run_id: str, format: str) -> int:
    from pmagent.cli.job_screen import attach
    from pmagent.cli.run_text import RUN, document, exit_code, summary
    from pmagent.jobs.catalogue import ALL, Catalogue

    entry = Catalogue(app.layout, kept=ALL, checks=True).prefixed([RUNS], id_prefix(run_id, "RUN_ID"), ALL)
    run = attach(app, RUN, entry, plain=format == "json")
    app.output.answer(format, document(run), lambda: summary(app.output, run))
    return exit_code(run)


def _run(app: App, asked: RunRequested, format: str, *, detach: bool) -> int:
    from pmagent.cli.job_screen import follow_job
    from pmagent.cli.run_text import RUN, document, exit_code, summary

    run = follow_job(app, RUN, asked, detach=detach, plain=format == "json")
    if run is None:
        app.output.answer(format, {"run_id": asked.run_id, "state": "open"}, lambda: app.output.line(asked.run_id))
        if format != "json":
            app.output.note(
                f"it goes on by itself; pmagent runs {asked.run_id[:8]} shows it, pmagent cancel ends it, and "
                "pmagent run --follow watches it"
            )
        return Exit.DONE
    app.output.answer(format, document(run), lambda: summary(app.output, run))
    return exit_code(run)
