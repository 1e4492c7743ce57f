"""``pmagent runs`` and ``pmagent audits``: what became of them. They choose as the console's lists do."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from pmagent.cli.frame import App, Command, format_option, pass_app
from pmagent.cli.inputs import id_prefix
from pmagent.cli.shell import complete_jobs
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import AUDITS, RUNS, Kind

if TYPE_CHECKING:
    from pmagent.cli.job_text import Rendering

COUNT_MAX: Final = 10_000

F = TypeVar("F", bound=Callable[..., Any])


def selecting(kind: Kind) -> Callable[[F], F]:
    """The options of a list of these jobs: ``count``, and the filters of ``Catalogue.listed``."""
    options = [
        click.option("-n", "--lines", "count", type=click.IntRange(1, COUNT_MAX), default=20, show_default=True,
                     metavar="N", help="The last N."),
        click.option("--state", type=click.Choice(kind.states), help=f"Only {kind.word}s in this state."),
        click.option("--text", help="Only those whose subject contains this text."),
        click.option("--before", type=click.IntRange(1), metavar="POSITION",
                     help="Only those requested before this position."),
    ]  # fmt: skip

    def decorated(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated

@click.command(cls=Command, example=["pmagent runs", "pmagent runs --state failed -n 5 --format json",
                                     "pmagent runs 5b0c7a52"])
@click.argument("run_id", required=False, shell_complete=partial(complete_jobs, only=[RUNS]))
@selecting(RUNS)
@format_option()
@pass_app
def runs(app: App, /, run_id: str | None, format: str, **given: Any) -> int:
    """The latest runs, newest first; or the run RUN_ID with its tasks and the place of its documents.

    RUN_ID may be the beginning of an id. Only the log is read, with or without a daemon. JSON holds whole tasks, as in
    the contract's task documents."""
    from pmagent.cli.run_text import RUN

    return _shown(app, RUN, run_id, format, **given)


@click.command(cls=Command, example=["pmagent audits", "pmagent audits --state concluded -n 5 --format json",
                                     "pmagent audits 5b0c7a52"])
@click.argument("audit_id", required=False, shell_complete=partial(complete_jobs, only=[AUDITS]))
@selecting(AUDITS)
@format_option()
@pass_app
def audits(app: App, /, audit_id: str | None, format: str, **given: Any) -> int:
    """The latest audits, newest first; or the audit AUDIT_ID with its criteria, scores and the place of its report.

    AUDIT_ID may be the beginning of an id. Only the log is read, with or without a daemon."""
    from pmagent.cli.audit_text import AUDIT

    return _shown(app, AUDIT, audit_id, format, **given)


def _shown(app: App, shown: Rendering, job_id: str | None, format: str, *, count: int, **given: Any) -> int:
    from pmagent.cli.job_text import listing
    from pmagent.jobs.catalogue import ALL, Catalogue
    from pmagent.jobs.history import opened

    kind, output = shown.kind, app.output
    filters = {name: value for name, value in given.items() if value}
    catalogue = Catalogue(app.layout, kept=ALL, checks=True)
    if job_id is not None:
        if filters:
            raise click.UsageError("--state, --text and --before choose from the list: leave them out, or the id")
        entry = catalogue.prefixed([kind], id_prefix(job_id, kind.id_field.upper()), ALL)
        with opened(app.layout) as log:
            view = log.view(kind, entry.position)
        if format == "json":
            output.document(shown.whole(view))
            return Exit.DONE
        shown.summary(output, view)
        if not view.over and not app.layout.store.holder().live:
            output.line(f"  nobody carries it now; pmagent up, or {shown.next}, takes it up")
        shown.details(output, view)
        return Exit.DONE
    found = catalogue.listed(kind, count, **filters, look=ALL).entries
    if format == "text":
        listing(output, shown, found, narrows=bool(filters))
        return Exit.DONE
    with opened(app.layout) as log:
        entries = [
            shown.entry(log.brief(kind, one.position, one.ending.position if one.ending else 0), one.ending)
            for one in found
        ]
    output.document({f"{kind.word}s": entries})
    return Exit.DONE
