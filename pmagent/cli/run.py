"""``pmagent run``: have a task done by tools in sandboxes, and watch (docs/design.md §14)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from pmagent.actors.oa.policy import CARE, WORK
from pmagent.cli.frame import App, Command, command
from pmagent.cli.inputs import STDIN, BadInput, can_answer, confirmed, from_here, id_prefix, job_id, source_from
from pmagent.cli.output import Styled
from pmagent.cli.shell import complete_jobs
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import RUNS

if TYPE_CHECKING:
    from pmagent.contracts.orchestra_events import RunRequested
    from pmagent.jobs.kinds import Source

_OWN: Final = "orchestra.config.yaml"
_WORDS: Final = "pmagent.run.words"


class RunCommand(Command):
    """A command after ``--`` is one program to run; with --plan, what stands there is INTENT, as everywhere."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the program and its arguments out."""
        own, dashes, words = args, "--" in args, list[str]()
        if dashes:
            at = args.index("--")
            own, words = args[:at], args[at + 1 :]
        if any(one == "--plan" or one.startswith("--plan=") for one in own):
            return super().parse_args(ctx, args)
        ctx.meta[_WORDS] = words
        if dashes and not words and not ctx.resilient_parsing:
            raise click.UsageError("no program stands after --", ctx)
        return super().parse_args(ctx, own)


@command(
    "pmagent run -- ls -l", "pmagent run 'Look around' --plan plan.yaml",
    "pmagent run 'Look around' --plan plan.yaml --plan-only",
    "pmagent run 'Look around' --plan plan.yaml --dry-run --format json",
    "pmagent run 'Look around' --plan plan.yaml --detach", "pmagent run --follow 5b0c7a52", cls=RunCommand,
    request=True,
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
              metavar="CLASS", help=f"The action class that the OA must permit: {', '.join([*WORK, *CARE])}.")
@click.option("--detach", is_flag=True, help="Leave it to the daemon, and print the run's id.")
@click.option("--follow", metavar="RUN_ID", shell_complete=partial(complete_jobs, only=[RUNS]),
              help="Show a run that goes on already, to its end; Ctrl-C leaves it.")
def run(
    app: App, intent: str | None, plan: str | None, plan_only: bool, dry_run: bool, concurrency: int | None,
    retries: int | None, replan: int, out: str | None, config: str | None, action: str, detach: bool,
    follow: str | None, request: str | None, format: str,
) -> int:
    """Have INTENT done by the tasks of a plan, each a tool in a sandbox, in the order of their dependencies. With --
    and a program with its arguments, run that one alone, once, and pass on its output.

    Progress goes to stderr. Ctrl-C ends the run in order: its tasks are stopped, its documents written. Exit 0: every
    task is done. 1: some failed, or the run was refused, cancelled or stopped. 2: its configuration or plan is wrong.
    6: a time limit, or the daemon took it and does not answer. 7: policy forbids what the
    plan asks for, or a tool broke a rule of its sandbox. `pmagent runs` shows the outcome."""
    words = tuple(click.get_current_context().meta.get(_WORDS, ()))
    if follow is not None:
        if intent is not None or words or detach or request or plan or config:
            raise click.UsageError("--follow shows a run that was asked for before: give its id alone")
        return _follow(app, follow, format)
    _check_flags(plan=plan, config=config, plan_only=plan_only, dry_run=dry_run, replan=replan, detach=detach)
    from pmagent.actors.orchestra.planning.plan import BYTES_MAX
    from pmagent.actors.sandbox.programs import searched
    from pmagent.orchestra.command import NotListed, intent_of
    from pmagent.orchestra.request import RunOptions, as_request, warnings_of
    from pmagent.workspace.presence import require_workspace

    if intent is None and not words:
        raise click.UsageError("Missing argument 'INTENT'.")
    if words and replan:
        raise click.UsageError("--replan asks a planner, and -- names the one program to run")
    if words:  # before its program is looked for: where no workspace is, no whitelist would help
        require_workspace(app.workspace)
    options = RunOptions(
        intent=intent if intent is not None else intent_of(words), words=words,
        config=source_from(config, BYTES_MAX, "it has to hold a configuration"), plan=_plan_of(app, plan),
        concurrency=concurrency, retries=retries, replan=replan, out=out, action=action, plan_only=plan_only,
        dry_run=dry_run, search=searched(app.environ),
    )
    run_id = job_id(request)
    try:
        asked = as_request(options, app.workspace, run_id)
    except NotListed:
        if options.config is not None or not _allowed(app, words, options.search):
            raise
        asked = as_request(options, app.workspace, run_id)
    if options.config is not None:
        _check_given(app, asked, options.config.where)
    for warning in warnings_of(asked.config):
        app.output.note(Styled("warning:", "yellow"), f" {warning}")
    return _run(app, asked, format, detach=detach, alone=bool(words))


def _near(path: str) -> str:
    """A hint: a plan beside the one that is not there, called much the same; "" where there is none."""
    folder, name = os.path.split(path)
    try:
        plans = [one for one in os.listdir(folder or ".") if one.endswith((".yaml", ".yml", ".json"))]
    except OSError:
        return ""
    if near := get_close_matches(name, sorted(plans), 1):
        return f"did you mean {os.path.join(folder, near[0])}?"
    return "" if plans else "pmagent init writes a plan for the tests of a repository"


def _plan_of(app: App, path: str | None) -> Source | None:
    """The plan that the command names. Raises BadInput, which names the file where it lies in the workspace's folder
    and not in the current one, or one of a name like it."""
    from pmagent.actors.orchestra.planning.plan import BYTES_MAX

    try:
        return source_from(path, BYTES_MAX, "it has to hold a plan")
    except BadInput as error:
        if path is None or path == STDIN or os.path.lexists(path):
            raise
        if not (app.workspace / path).is_file():
            raise BadInput(error.message, _near(path) or error.hint) from error
        raise BadInput(error.message, f"the workspace has one: --plan {from_here(app.workspace, path)}") from error


def _allowed(app: App, words: Sequence[str], search: Sequence[str]) -> bool:
    """Ask on a terminal whether tasks may start the command's program, and write that into the workspace's
    configuration. Raises NotAccepted where that was not accepted as it is; NotListed for a path."""
    from pmagent.orchestra.command import allow, program_of
    from pmagent.orchestra.request import configured, of_workspace
    from pmagent.workspace.trust import Powers, accept_also, require_accepted

    workspace = app.workspace.resolve()
    program = program_of(words, workspace, search)
    if not can_answer(app.output):
        return False
    require_accepted(workspace)
    app.output.note(Styled("not listed:", "yellow"), f" {program} is not in whitelist_tools of {_OWN}")
    if not confirmed(app.output, f"let tasks of this workspace start {program}, in their sandbox?", "it there"):
        return False
    source, (_, config) = of_workspace(workspace), configured(workspace)
    allow(program, workspace, source, config)
    accept_also(workspace, Powers([f"program: {program}"]))  # what else the files say by now nobody was asked about
    app.output.note(f"{program} stands in whitelist_tools of {_OWN} now")
    return True


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


@command("pmagent rerun 5b0c7a52", "pmagent rerun 5b0c7a52 --failed", request=True)
@click.argument("run_id", shell_complete=partial(complete_jobs, only=[RUNS]))
@click.option("--failed", is_flag=True, help="Only tasks that are not done; the results of the others are taken over.")
@click.option("--detach", is_flag=True, help="Leave it to the daemon, and print the new run's id.")
def rerun(app: App, run_id: str, failed: bool, detach: bool, request: str | None, format: str) -> int:
    """Repeat a run that is over: a new run by its recorded plan, configuration and action class.

    RUN_ID may be the beginning of an id. With --failed, tasks that are done stay done, and what they have left is read
    by the tasks that wait for them. Exit codes are those of pmagent run; 1 also where nothing can be repeated."""
    from pmagent.jobs.catalogue import ALL, Catalogue
    from pmagent.jobs.history import opened
    from pmagent.orchestra.repeating import repeated

    entry = Catalogue(app.layout, kept=ALL, checks=True).prefixed([RUNS], id_prefix(run_id, "RUN_ID"), ALL)
    if failed:
        entry.require_kept()
    with opened(app.layout) as jobs:
        asked = repeated(jobs, entry.position, job_id(request), failed=failed)
    return _run(app, asked, format, detach=detach, alone=False)


def _follow(app: App, run_id: str, format: str) -> int:
    from pmagent.cli.job_screen import attach
    from pmagent.cli.run_text import RUN, document, exit_code, summary
    from pmagent.jobs.catalogue import ALL, Catalogue

    entry = Catalogue(app.layout, kept=ALL, checks=True).prefixed([RUNS], id_prefix(run_id, "RUN_ID"), ALL)
    run = attach(app, RUN, entry, plain=format == "json")
    app.output.answer(format, document(run), lambda: summary(app.output, run))
    return exit_code(run)


def _run(app: App, asked: RunRequested, format: str, *, detach: bool, alone: bool = False) -> int:
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
    if alone and format != "json":
        from pmagent.cli.logs import show_alone

        show_alone(app, asked.run_id)
        reasons = [task["reason"] for task in document(run)["tasks"] if task["reason"]] or run.reasons
        done = exit_code(run) == Exit.DONE
        mark = Styled("✓ done", "green") if done else Styled(f"✗ {run.state}", "red")
        app.output.note(mark, f": {'; '.join(reasons)}" if reasons else "", f"; pmagent runs {asked.run_id[:8]}")
        for mend in run.mend:
            app.output.note(Styled("hint:", "cyan"), f" {mend}")
        return exit_code(run)
    app.output.answer(format, document(run), lambda: summary(app.output, run))
    return exit_code(run)
