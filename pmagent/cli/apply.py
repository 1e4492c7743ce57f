"""``pmagent apply``: the files of a run, shown as a difference, approved, and committed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pmagent.cli.frame import App, command
from pmagent.cli.inputs import can_answer, confirmed, id_prefix
from pmagent.cli.output import Styled
from pmagent.cli.pla.common import acting, ask
from pmagent.cli.shell import complete_jobs
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import RUNS

if TYPE_CHECKING:
    from pmagent.orchestra.applying import Offer


@command("pmagent apply 5b0c7a52", "pmagent apply 5b0c7a52 rewrite", operator=True)
@click.argument("run_id", shell_complete=partial(complete_jobs, only=[RUNS]))
@click.argument("task", required=False, default="")
@click.option("--digest", metavar="HEX", help="Approve exactly the changes that were shown with this digest.")
@click.option("--message", "-m", metavar="TEXT", help="The commit's message [default: the run's intent].")
def apply(
    app: App, run_id: str, task: str, digest: str | None, message: str | None, operator: str | None, format: str
) -> int:
    """Show what the files that a run's done tasks (or TASK) left in $ARTIFACTS would change here, and commit it.

    Each file goes to its own path in the workspace. On a terminal, typing yes approves the shown difference; elsewhere
    the digest that is shown with it does, in a second call. Then the files are written and committed by your own git,
    with its hooks and nothing else staged, and the log holds the approval and the commit. Exit 1: not approved, or it
    cannot be done, and the workspace is as it was; or a hook changed what was committed."""
    from pmagent.jobs.catalogue import ALL, Catalogue
    from pmagent.jobs.history import opened
    from pmagent.orchestra.applying import NotApplicable, commit, different, offered
    from pmagent.workspace.trust import require_accepted

    require_accepted(app.workspace.resolve())  # git obeys the settings of a repository that came with its .git
    entry = Catalogue(app.layout, kept=ALL, checks=True).prefixed([RUNS], id_prefix(run_id, "RUN_ID"), ALL)
    entry.require_kept()
    with opened(app.layout) as jobs:
        offer = offered(jobs, entry.position, task, app.workspace)
    if not offer.changes:
        app.output.answer(format, _document(offer), lambda: app.output.line("nothing to apply: no file would change"))
        return Exit.DONE
    if digest is None and not _approved(app, offer, format):
        return Exit.NO
    if digest not in (None, offer.digest):
        raise NotApplicable("the digest is not that of what would change now", "look at it again: pmagent apply")
    asked = {"task": task, "digest": offer.digest, "operator": acting(app, operator), "channel": "cli"}
    approval = ask(app, "orchestra.apply", run_id=entry.job_id, **asked).document["position"]
    told = partial(ask, app, "orchestra.applied", run_id=entry.job_id, approval=approval)
    try:
        made = commit(app.workspace, offer, _message(offer, message, approval))
    except BaseException as error:
        told(commit="", reason=error.message if isinstance(error, NotApplicable) else type(error).__name__)
        raise
    if others := different(app.workspace, offer, made):
        what = f"the commit {made[:12]} holds something else than was approved in {', '.join(others[:3])}"
        told(commit=made, reason=what)
        raise NotApplicable(what, f"a hook or another program changed it; look at: git show {made[:12]}")
    told(commit=made, reason="")
    text = Styled("✓ committed", "green"), f": {_files(offer)} in {made[:12]}"
    app.output.answer(format, _document(offer) | {"commit": made}, lambda: app.output.line(*text))
    return Exit.DONE


def _approved(app: App, offer: Offer, format: str) -> bool:
    """Show the changes; whether a person approves them."""
    output = app.output
    if format == "json":
        output.document(_document(offer))
        return False
    with output.paged(wanted=app.pager):
        for change in offer.changes:
            output.difference(change.lines())
    output.line("")
    output.line(f"digest  {offer.digest}")
    if not (can_answer(output) and output.is_seen):
        output.note(f"nothing was changed; with --digest {offer.digest} exactly this is approved")
        return False
    return confirmed(output, f"write and commit {_files(offer)}?", "--digest HEX")


def _files(offer: Offer) -> str:
    return f"{len(offer.changes)} file{'s' if len(offer.changes) != 1 else ''}"


def _message(offer: Offer, given: str | None, approval: int) -> str:
    subject = given or next((line for line in offer.run.asked.intent.splitlines() if line.strip()), "")[:72]
    tasks = ", ".join(dict.fromkeys(change.task for change in offer.changes))
    return f"{subject}\n\nWritten by: {tasks}\n\nPmagent-Run: {offer.run.id}\nPmagent-Approval: {approval}\n"


def _document(offer: Offer) -> dict[str, Any]:
    return {
        "run_id": offer.run.id, "digest": offer.digest,
        "files": [
            {"path": one.path, "task": one.task, "new": one.before is None, "difference": one.lines()[1:]}
            for one in offer.changes
        ],
        "commit": None,
    }
