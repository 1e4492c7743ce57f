"""``pmagent audits``: what became of audits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from contracts.audit_events import AuditConcluded
from events.log import now
from pmagent.clean import pad, shorten
from pmagent.cli.frame import App, Command, format_option, pass_app
from pmagent.cli.given import id_prefix
from pmagent.cli.output import Output, Piece, Styled
from pmagent.cli.run_table import mark
from pmagent.cli.selecting import Selected, selecting
from pmagent.cli.shell import complete_audits
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import AUDITS
from pmagent.when import short

if TYPE_CHECKING:
    from pmagent.jobs.history import Job

@click.command(cls=Command, example=["pmagent audits", "pmagent audits --state concluded -n 5 --format json",
                                     "pmagent audits 5b0c7a52"])
@click.argument("audit_id", required=False, shell_complete=complete_audits)
@selecting(AUDITS)
@format_option()
@pass_app
def audits(app: App, /, audit_id: str | None, format: str, **given: Any) -> int:
    """The latest audits, newest first; or the audit AUDIT_ID, its criteria and scores, and where its report is.

    AUDIT_ID may be the beginning of an id. Only the log is read, whoever writes it.
    """
    from pmagent.audit.history import opened_history
    from pmagent.cli.audit_answer import document, summary

    selected = Selected(**given)
    with opened_history(app.layout) as history:
        if audit_id is not None:
            selected.only_of_lists()
            progress = history.progress(history.called(id_prefix(audit_id, "AUDIT_ID")))
            if format == "json":
                app.output.document(document(progress, []))
                return Exit.DONE
            summary(app.output, progress, [], now())
            if not progress.over and not app.layout.store.holder().live:
                app.output.line("  nobody carries it now; pmagent up, or the next command that runs, takes it up")
            return Exit.DONE
        found = history.latest(selected.count, **selected.filters)
    if format == "json":
        app.output.document({"audits": [_entry(job) for job in found]})
    else:
        _list(app.output, found, selected)
    return Exit.DONE


def _list(output: Output, found: list[Job], selected: Selected) -> None:
    if not found:
        output.line("no such audits" if selected.narrows else "no audits yet: pmagent audit REPO_URL PDF")
        return
    output.line(Styled(f"{'AUDIT':<8}  {'ASKED FOR (UTC)':<18}  {'STATE':<11}  {'SCORE':>5}  REPOSITORY", "bold"))
    for job in found:
        score = _score(job)
        said: list[Piece] = [
            job.asked.audit_id[:8],
            "  ",
            Styled(short(job.requested.time), "dim"),
            "  ",
            mark(job.state),
            " ",
            pad(job.state, 9),
            "  ",
            f"{'' if score is None else f'{score:g}/5':>5}",
            "  ",
        ]
        output.line(*said, shorten(job.asked.repo_url, max(20, output.columns - 52)))


def _score(job: Job) -> float | None:
    data = job.end.data if job.end is not None else None
    return data.overall_score if isinstance(data, AuditConcluded) else None


def _entry(job: Job) -> dict[str, Any]:
    asked = job.asked
    return {
        "audit_id": asked.audit_id,
        "repo_url": asked.repo_url,
        "pdf_path": asked.pdf_path,
        "state": job.state,
        "reasons": job.reasons,
        "overall_score": _score(job),
        "engine": asked.engine,
        "model": asked.model or None,
        "rubric": asked.rubric_source,
        "requested_at": job.requested.time,
        "ended_at": job.end.time if job.end is not None else None,
        "position": job.requested.position,
        "report": f"{asked.output}.md" if job.state == "concluded" else None,
    }
