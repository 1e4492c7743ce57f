"""``pmagent cancel``: the end, in order, of a run or an audit that is still open."""

from __future__ import annotations

from typing import Any

import click

from pmagent.cli.frame import App, command, same_request
from pmagent.cli.inputs import id_prefix
from pmagent.cli.output import Styled
from pmagent.cli.shell import complete_jobs
from pmagent.exitcodes import Exit


@command("pmagent cancel 5b0c7a52", request=True)
@click.argument("job_id", shell_complete=complete_jobs)
def cancel(app: App, job_id: str, request: str | None, format: str) -> int:
    """End the open run or audit JOB_ID, or the one whose id begins with it: its work is stopped, its documents are
    written.

    Exit 0 when the request is accepted, 1 when no such job is open, 6 when the daemon does not answer (it ends the job
    when it goes on). The job has ended when `pmagent runs JOB_ID` or `pmagent audits JOB_ID` says so."""
    from pmagent.jobs.catalogue import ALL, Catalogue
    from pmagent.jobs.following import HeldByJob
    from pmagent.jobs.registry import KINDS, held_by_job
    from pmagent.service.client import new_request
    from pmagent.service.operations import call

    job = Catalogue(app.layout, kept=ALL, checks=True).prefixed(KINDS, id_prefix(job_id, "JOB_ID"), ALL)
    kind, field, found = job.kind, job.kind.id_field, job.job_id
    held = held_by_job(app.layout) if job.ending is None else None
    if held is not None:
        what = f"the log is held by the {held.kind.word} of another shell ({held.process})"
        raise HeldByJob(what, "Ctrl-C there ends it; jobs of a daemon (pmagent up) can be cancelled from any shell")
    document: dict[str, Any] = {field: found, "accepted": False, "text": f"the {kind.word} is {job.state} already"}
    code: int = Exit.NO
    if job.ending is None:
        asked = {"request": new_request(kind.cancel), field: found, **same_request(request)}
        answer = call(app.workspace, kind.cancel, asked, app.output.note)
        document, code = answer.document, answer.exit_code
    if format == "json":
        app.output.document(document)
    elif document["accepted"]:
        app.output.line(Styled("✓ accepted", "green"), f": the {kind.word} {found} is ending")
    else:
        app.output.line(Styled("✗ not cancelled", "red"), f": {found}: {document['text']}")
    return code
