"""``pmagent runs``: what became of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from contracts.orchestra_events import RunEnded
from events.log import now
from pmagent.clean import pad, shorten
from pmagent.cli.frame import App, Command, format_option, pass_app
from pmagent.cli.given import id_prefix
from pmagent.cli.output import Output, Piece, Styled
from pmagent.cli.run_answer import summary, whole
from pmagent.cli.run_table import mark, table
from pmagent.cli.selecting import Selected, selecting
from pmagent.cli.shell import complete_runs
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import RUNS
from pmagent.orchestra.places import folder_of
from pmagent.when import short

if TYPE_CHECKING:
    from pmagent.jobs.history import Job
    from pmagent.orchestra.progress import Progress

@click.command(cls=Command, example=["pmagent runs", "pmagent runs --state failed -n 5 --format json",
                                     "pmagent runs 5b0c7a52"])
@click.argument("run_id", required=False, shell_complete=complete_runs)
@selecting(RUNS)
@format_option()
@pass_app
def runs(app: App, /, run_id: str | None, format: str, **given: Any) -> int:
    """The latest runs, newest first; or the run RUN_ID, its tasks, and where its documents are.

    RUN_ID may be the beginning of an id. Only the log is read, whoever writes it. As JSON, tasks are whole, as the
    contract's task documents.
    """
    from pmagent.orchestra.history import opened_history

    selected = Selected(**given)
    with opened_history(app.layout) as history:
        if run_id is not None:
            selected.only_of_lists()
            requested = history.called(id_prefix(run_id, "RUN_ID"))
            run = history.progress(requested)
            if format == "text":
                _one(app, run)
            else:
                app.output.document(whole(run, history.task_documents(requested)))
            return Exit.DONE
        found = history.latest(selected.count, **selected.filters)
    if format == "json":
        app.output.document({"runs": [_entry(run) for run in found]})
    else:
        _list(app.output, found, selected)
    return Exit.DONE


def _one(app: App, run: Progress) -> None:
    output = app.output
    summary(output, run)
    if not run.over and not app.layout.store.holder().live:
        output.line("  nobody carries it now; pmagent up, or the next pmagent run, takes it up")
    output.line(f"  folder  {folder_of(run.asked.config, run.run_id)}")
    output.line("  intent  ", shorten(run.asked.intent, output.columns - 10))
    until = run.last_time if run.over else now()
    for line in table(run, until, output.columns, len(run.tasks) + 1)[1:]:
        output.line(*line)
    for task in run.replaced:
        output.line("  ", Styled(f"replaced: {task.name} ({task.state})", "dim"))


def _list(output: Output, found: list[Job], selected: Selected) -> None:
    if not found:
        output.line("no such runs" if selected.narrows else "no runs yet: pmagent run 'What to do' --plan FILE")
        return
    output.line(Styled(f"{'RUN':<8}  {'ASKED FOR (UTC)':<18}  {'STATE':<11}  {'DONE':>14}  INTENT", "bold"))
    for run in found:
        said: list[Piece] = [
            run.asked.run_id[:8], "  ", Styled(short(run.requested.time), "dim"), "  ", mark(run.state), " ",
            pad(run.state, 9), "  ", f"{_counted(run):>14}", "  ",
        ]
        output.line(*said, shorten(run.asked.intent, max(20, output.columns - 61)))


def _counted(run: Job) -> str:
    data = run.end.data if run.end is not None else None
    return f"{data.done} of {data.done + data.failed}" if isinstance(data, RunEnded) and data.done + data.failed else ""


def _entry(run: Job) -> dict[str, Any]:
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
