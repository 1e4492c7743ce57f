"""``pmagent prune``: what old runs left is given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from pmagent.cli.frame import App, command
from pmagent.cli.inputs import confirmed
from pmagent.cli.output import Output, Styled
from pmagent.cli.pla.common import acting
from pmagent.exitcodes import Exit
from pmagent.when import BadTime, duration, sized

if TYPE_CHECKING:
    from pmagent.jobs.pruning import Prunable

LINES_MAX: Final = 12
AGE: Final = "30d"


def _seconds(_ctx: click.Context, _param: click.Parameter, value: str) -> float:
    try:
        return duration(value)
    except BadTime as error:
        raise click.BadParameter(f"{error.message}: {error.hint}") from error


@command("pmagent prune --dry-run", "pmagent prune --older-than 2w --keep 20 --yes", operator=True)
@click.option("--older-than", default=AGE, show_default=True, callback=_seconds, metavar="AGE",
              help="Only runs that ended so long ago: 36h, 30d, 0d.")
@click.option("--keep", type=click.IntRange(0), default=0, metavar="N", help="Never the N newest runs.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Do not ask; needed where nobody can answer.")
def prune(app: App, older_than: float, keep: int, dry_run: bool, yes: bool, operator: str | None, format: str) -> int:
    """Make room: remove the folders of old runs, and the output and files that nothing else needs.

    The log keeps every event, so `pmagent runs`, `log verify` and `replay` work as before, and know what was given up;
    output and files of those runs cannot be had back. A run stays while it is open, or while a kept run uses its
    results. Not beside a daemon: stop it first (`pmagent down`). Exit 1: you said no, or something is in the way."""
    from pmagent.events.errors import LogLocked
    from pmagent.jobs.pruning import Policy, look
    from pmagent.jobs.pruning import prune as pruning

    policy, output = Policy(older_than, keep), app.output
    holder = app.layout.store.holder()
    if holder.live and not dry_run:
        locked = LogLocked(app.layout.store.place, holder.note)
        locked.hint = "stop it first: pmagent down" if holder.role == "daemon" else "wait for its end"
        raise locked
    found = look(app.layout, policy)
    if format == "text":
        _screen(output, found)
    document = _document(found)
    if not found.runs or dry_run:
        output.answer(format, {"pruned": False, **document}, lambda: None)
        return Exit.DONE
    who = acting(app, operator)
    what = f"give up {_runs(len(found.runs))}, {sized(found.blob_bytes + found.document_bytes)}, for good?"
    if not yes and not confirmed(output, what, "--yes"):
        output.note("nothing was pruned")
        return Exit.NO
    ended = pruning(app.workspace.resolve(), policy, found, who)
    freed = sized(ended.bytes + found.document_bytes)
    text = Styled("✓ pruned", "green"), f": {_runs(len(found.runs))}, {freed}"
    output.answer(format, {"pruned": True, **document}, lambda: output.line(*text))
    return Exit.DONE


def _runs(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"


def _screen(output: Output, found: Prunable) -> None:
    for run in found.runs[:LINES_MAX]:
        ended = output.time(run.ending.time) if run.ending is not None else ""
        output.line(f"run        {run.job_id[:8]}  ended {ended}  {run.title[:60]}")
    if len(found.runs) > LINES_MAX:
        output.line(f"           … and {len(found.runs) - LINES_MAX} more")
    for run_id in found.needed[:LINES_MAX]:
        output.line(f"stays      {run_id[:8]}: a kept run uses its results")
    if not found.runs:
        output.line("nothing to prune: no other run ended so long ago")
        return
    output.line(f"documents  {sized(found.document_bytes)}, also what others put into the folders of these runs")
    output.line(f"blobs      {sized(found.blob_bytes)} in {len(found.blobs)}")


def _document(found: Prunable) -> dict[str, Any]:
    return {
        "runs": [run.job_id for run in found.runs], "needed": found.needed, "blobs": len(found.blobs),
        "blob_bytes": found.blob_bytes, "document_bytes": found.document_bytes,
    }
