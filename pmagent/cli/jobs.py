"""``pmagent runs`` and ``pmagent audits``: what became of them. They choose as the console's lists do."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, get_args

import click

from pmagent.cli.frame import App, Decorator, command, options
from pmagent.cli.inputs import id_prefix
from pmagent.cli.output import Styled
from pmagent.cli.shell import complete_jobs
from pmagent.contracts.orchestra import TaskState
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import AUDITS, RUNS, Kind

if TYPE_CHECKING:
    from pmagent.cli.job_text import Rendering
    from pmagent.jobs.catalogue import Catalogue

COUNT_MAX: Final = 10_000
COUNT: Final = 20
TASK_STATES: Final[tuple[str, ...]] = get_args(TaskState)



def selecting(kind: Kind, *parts: str) -> Decorator:
    """The options of a list of these jobs: ``count``, and the filters of ``Catalogue.listed``. ``parts``: states of
    what one job consists of."""
    states = tuple(dict.fromkeys((*kind.states, *parts)))
    return options(
        click.option("-n", "--lines", "count", type=click.IntRange(1, COUNT_MAX), metavar="N",
                     help=f"N at most [default: the last {COUNT}{'; all tasks' if parts else ''}]."),
        click.option("--state", type=click.Choice(states), metavar="STATE",
                     help=f"Only those in this state: {', '.join(states)}."),
        click.option("--failed", is_flag=True, help="Only those that ended without success."),
        click.option("--text", help="Only those whose subject contains this text."),
        click.option("--before", type=click.IntRange(1), metavar="POSITION",
                     help="Only those requested before this position."),
        click.option("--watch", is_flag=True, help="Show it live on the terminal, until Ctrl-C."),
    )  # fmt: skip


@command(
    "pmagent runs", "pmagent runs --failed -n 5 --format json", "pmagent runs 5b0c7a52 --failed",
    "pmagent runs --watch", reads=True,
)
@click.argument("run_id", required=False, shell_complete=partial(complete_jobs, only=[RUNS]))
@selecting(RUNS, *TASK_STATES)
def runs(app: App, /, run_id: str | None, format: str, **given: Any) -> int:
    """The latest runs, newest first; or the run RUN_ID with its tasks and the place of its documents.

    RUN_ID may be the beginning of an id; the filters choose among its tasks then. Only the log is read, with or without
    a daemon. JSON holds whole tasks, as in the contract's task documents. On a terminal long text goes to $PAGER
    (--no-pager: it does not)."""
    from pmagent.cli.run_text import RUN

    return _shown(app, RUN, run_id, format, **given)


@command("pmagent audits", "pmagent audits --state concluded -n 5 --format json", "pmagent audits 5b0c7a52", reads=True)
@click.argument("audit_id", required=False, shell_complete=partial(complete_jobs, only=[AUDITS]))
@selecting(AUDITS)
def audits(app: App, /, audit_id: str | None, format: str, **given: Any) -> int:
    """The latest audits, newest first; or the audit AUDIT_ID with its criteria, scores and the place of its report.

    AUDIT_ID may be the beginning of an id. Only the log is read, with or without a daemon."""
    from pmagent.cli.audit_text import AUDIT

    return _shown(app, AUDIT, audit_id, format, **given)


def _shown(
    app: App, shown: Rendering, job_id: str | None, format: str, *, count: int | None, watch: bool, **given: Any
) -> int:
    from pmagent.jobs.catalogue import ALL, Catalogue

    filters = {name: value for name, value in given.items() if value}
    if watch and format == "json":
        raise click.UsageError("--watch shows text: leave it out, or --format json")
    catalogue = Catalogue(app.layout, kept=ALL, checks=True)
    with app.output.paged(wanted=app.pager and not watch and format == "text"):
        if job_id is not None:
            return _one(app, shown, catalogue, job_id, format, count, watch=watch, **filters)
        return _all(app, shown, catalogue, format, count or COUNT, watch=watch, **filters)


def _one(
    app: App, shown: Rendering, catalogue: Catalogue, job_id: str, format: str, count: int | None, *,
    watch: bool, state: str = "", text: str = "", failed: bool = False, before: int = 0,
) -> int:
    """One job, or those of its parts that are asked for."""
    from pmagent.cli.job_screen import attach
    from pmagent.jobs.catalogue import ALL
    from pmagent.jobs.history import opened

    kind, output = shown.kind, app.output
    narrows = bool(state or text or failed or count)
    if before or (narrows and shown.narrowed is None) or (watch and narrows):
        raise click.UsageError("--before and --watch do not choose among the parts of one: leave them out, or the id")
    if state and state not in TASK_STATES:
        raise click.BadParameter(f"no task is {state}: {', '.join(TASK_STATES)}", param_hint="--state")
    entry = catalogue.prefixed([kind], id_prefix(job_id, kind.id_field.upper()), ALL)
    if entry.pruned and format == "text":
        what = f"pruned on {entry.pruned[:10]}: its documents and output are gone; this is what the log keeps"
        output.note(Styled("note:", "yellow"), f" {what}")
    if watch:
        view = attach(app, shown, entry, plain=False)
        shown.summary(output, view)
        return shown.exit_code(view)
    with opened(app.layout) as log:
        view = log.view(kind, entry.position)
    states = ["failed"] if failed else [state] if state else []
    part = view
    if narrows and shown.narrowed is not None:
        part = shown.narrowed(view, states, text, count or COUNT_MAX)
    if format == "json":
        tasks = {"tasks": shown.whole(part)["tasks"]} if narrows else {}
        output.document(shown.whole(view) | {"pruned_at": entry.pruned or None} | tasks)
        return Exit.DONE
    shown.summary(output, view)
    if not view.over and not app.layout.store.holder().live:
        output.line(f"  nobody carries it now; pmagent up, or {shown.next}, takes it up")
    shown.details(output, part)
    return Exit.DONE


def _all(
    app: App, shown: Rendering, catalogue: Catalogue, format: str, count: int, *, watch: bool, **filters: Any
) -> int:
    """The list."""
    from pmagent.cli.job_screen import watch_list
    from pmagent.cli.job_text import listing
    from pmagent.jobs.catalogue import ALL
    from pmagent.jobs.history import opened

    kind, output = shown.kind, app.output
    if filters.get("state") not in (None, *kind.states):
        known = ", ".join(kind.states)
        raise click.BadParameter(f"no {kind.word} is {filters['state']}: {known}", param_hint="--state")

    def lines(columns: int, most: int) -> list[Any]:
        found = catalogue.listed(kind, min(count, most), **filters, look=ALL).entries
        return listing(output, shown, found, columns, narrows=bool(filters))

    if watch:
        return watch_list(app, lines)
    if format == "text":
        for line in lines(output.columns, count):
            output.line(*line)
        return Exit.DONE
    found = catalogue.listed(kind, count, **filters, look=ALL).entries
    with opened(app.layout) as log:
        entries = [
            shown.entry(log.brief(kind, one.position, one.ending.position if one.ending else 0), one.ending)
            | {"pruned_at": one.pruned or None}
            for one in found
        ]
    output.document({f"{kind.word}s": entries})
    return Exit.DONE
