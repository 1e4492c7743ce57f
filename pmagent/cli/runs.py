"""``pmagent runs`` and ``pmagent cancel``: what became of runs, and the end of one that is still open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from contracts.orchestra_events import RunEnded
from events.lock import is_locked
from events.log import now
from pmagent.cli.clean import pad, shorten
from pmagent.cli.frame import App, Command, format_option, pass_app
from pmagent.cli.output import Output, Piece, Styled
from pmagent.cli.run_answer import summary, whole
from pmagent.cli.run_table import mark, table
from pmagent.cli.shell import complete_runs
from pmagent.cli.when import short
from pmagent.exitcodes import Exit
from pmagent.orchestra.places import folder_of

if TYPE_CHECKING:
    from pmagent.orchestra.history import Listed
    from pmagent.orchestra.progress import Progress

COUNT_MAX: Final = 10_000


@click.command(cls=Command, example=["pmagent runs", "pmagent runs -n 5 --format json", "pmagent runs 5b0c7a52"])
@click.argument("run_id", required=False, shell_complete=complete_runs)
@click.option("-n", "--lines", "count", type=click.IntRange(1, COUNT_MAX), default=20, show_default=True,
              metavar="N", help="The last N.")
@format_option()
@pass_app
def runs(app: App, run_id: str | None, count: int, format: str) -> int:
    """The latest runs, newest first; or the run RUN_ID, its tasks, and where its documents are.

    RUN_ID may be the beginning of an id. Only the log is read, whoever writes it. As JSON, tasks are whole, as the
    contract's task documents.
    """
    from pmagent.orchestra.history import opened

    with opened(app.layout) as history:
        if run_id is not None:
            requested = history.called(_prefix(run_id))
            run = history.progress(requested)
            if format == "text":
                _one(app, run)
            else:
                app.output.document(whole(run, history.task_documents(requested)))
            return Exit.DONE
        found = history.latest(count)
    if format == "json":
        app.output.document({"runs": [_entry(run) for run in found]})
    else:
        _list(app.output, found)
    return Exit.DONE


def _one(app: App, run: Progress) -> None:
    output = app.output
    summary(output, run)
    if not run.over and not is_locked(app.layout.lock):
        output.line("  nobody carries it now; pmagent up, or the next pmagent run, takes it up")
    output.line(f"  folder  {folder_of(run.asked.config, run.run_id)}")
    output.line("  intent  ", shorten(run.asked.intent, output.columns - 10))
    until = run.last_time if run.over else now()
    for line in table(run, until, output.columns, len(run.tasks) + 1)[1:]:
        output.line(*line)
    for task in run.replaced:
        output.line("  ", Styled(f"replaced: {task.name} ({task.state})", "dim"))


@click.command(cls=Command, example="pmagent cancel 5b0c7a52")
@click.argument("run_id", shell_complete=complete_runs)
@format_option()
@pass_app
def cancel(app: App, run_id: str, format: str) -> int:
    """End the open run RUN_ID (or the one whose id begins so): its tasks are stopped, its documents written.

    Exit 0 when the run takes it, 1 when no such run is open. The run has ended when `pmagent runs RUN_ID` says so.
    """
    from pmagent.operations import call, new_request
    from pmagent.orchestra.asking import CANCEL
    from pmagent.orchestra.following import HeldByRun, held_by_run
    from pmagent.orchestra.history import opened

    with opened(app.layout) as history:
        run = history.progress(history.called(_prefix(run_id)))
    held = "" if run.over else held_by_run(app.layout)
    if held:
        raise HeldByRun(f"the log is held by a run in another shell ({held})", "Ctrl-C there ends it")
    document: dict[str, Any] = {"run_id": run.run_id, "accepted": False, "text": f"the run is {run.state} already"}
    code: int = Exit.NO
    if not run.over:
        request = {"request": new_request(CANCEL), "run_id": run.run_id}
        answer = call(app.workspace, CANCEL, request)
        document, code = answer.document, answer.exit_code
    if format == "json":
        app.output.document(document)
    elif document["accepted"]:
        app.output.line(Styled("✓ accepted", "green"), f": the run {run.run_id} is ending")
    else:
        app.output.line(Styled("✗ not cancelled", "red"), f": {run.run_id}: {document['text']}")
    return code


def _prefix(run_id: str) -> str:
    """The beginning of an id, as it was given. Raises BadParameter."""
    if not run_id or not set(run_id.lower()) <= _ID_CHARS or len(run_id) > _ID_LENGTH:
        raise click.BadParameter("an id, or its beginning: digits, a to f, and -", param_hint="RUN_ID")
    return run_id


_ID_CHARS: Final = frozenset("0123456789abcdef-")
_ID_LENGTH: Final = 36


def _list(output: Output, found: list[Listed]) -> None:
    if not found:
        output.line("no runs yet: pmagent run 'What to do' --plan FILE")
        return
    output.line(Styled(f"{'RUN':<8}  {'ASKED FOR (UTC)':<18}  {'STATE':<11}  {'DONE':>14}  INTENT", "bold"))
    for run in found:
        said: list[Piece] = [
            run.asked.run_id[:8], "  ", Styled(short(run.requested.time), "dim"), "  ", mark(run.state), " ",
            pad(run.state, 9), "  ", f"{_counted(run):>14}", "  ",
        ]
        output.line(*said, shorten(run.asked.intent, max(20, output.columns - 61)))


def _counted(run: Listed) -> str:
    data = run.end.data if run.end is not None else None
    return f"{data.done} of {data.done + data.failed}" if isinstance(data, RunEnded) and data.done + data.failed else ""


def _entry(run: Listed) -> dict[str, Any]:
    data = run.end.data if run.end is not None else None
    done, failed = (data.done, data.failed) if isinstance(data, RunEnded) else (0, 0)
    return {
        "run_id": run.asked.run_id,
        "intent": run.asked.intent,
        "action": run.asked.action,
        "state": run.state,
        "reasons": run.reasons,
        "done": done,
        "failed": failed,
        "plan_only": run.asked.plan_only,
        "dry_run": run.asked.dry_run,
        "requested_at": run.requested.time,
        "ended_at": run.end.time if run.end is not None else None,
        "position": run.requested.position,
        "folder": folder_of(run.asked.config, run.asked.run_id),
    }
