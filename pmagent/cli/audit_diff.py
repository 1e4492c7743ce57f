"""``pmagent audit diff``: which criteria went up or down from one audit to another, and which evidence changed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pmagent.cli.frame import App, command
from pmagent.cli.inputs import BadInput, id_prefix
from pmagent.cli.output import Output, Styled
from pmagent.cli.shell import complete_jobs
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import AUDITS

if TYPE_CHECKING:
    from pmagent.contracts.audit import AuditReport

_STYLES: Final = {"up": "green", "down": "red"}


@command("pmagent audit diff 5b0c7a52 77e1d004 --format json", name="audit diff")
@click.argument("a", shell_complete=partial(complete_jobs, only=[AUDITS]))
@click.argument("b", shell_complete=partial(complete_jobs, only=[AUDITS]))
def diff(app: App, a: str, b: str, format: str) -> int:
    """Compare the reports of the audits A and B: criteria that went up or down, and the evidence that changed.

    A and B are ids, or their beginnings, as `pmagent audits` shows them. Evidence is equal when its goal, its file and
    whether it was found are: a line that moved is no change. Only the log is read. A repository in a folder named diff
    is ./diff. Exit 0: equal. 1: different. 2: one of them has no report."""
    from pmagent.jobs.catalogue import ALL, Catalogue
    from pmagent.projections.audits.comparison import compared

    catalogue = Catalogue(app.layout, kept=ALL, checks=True)
    document = compared(_report(app, catalogue, a, "A"), _report(app, catalogue, b, "B"))
    app.output.answer(format, document, lambda: _screen(app.output, document))
    return Exit.DONE if document["equal"] else Exit.NO


def _report(app: App, catalogue: Any, given: str, name: str) -> AuditReport:
    """The report of the audit whose id begins so. Raises BadInput, BadParameter, NoSuchJob."""
    from pmagent.jobs.catalogue import ALL
    from pmagent.jobs.history import opened
    from pmagent.projections.audits.rebuilt import report_of

    entry = catalogue.prefixed([AUDITS], id_prefix(given, name), ALL)
    with opened(app.layout) as log:
        audit = log.view(AUDITS, entry.position)
    if audit.concluded is None:
        raise BadInput(f"the audit {audit.id} is {audit.word}: it has no report", "pmagent audits lists those that do")
    return report_of(audit)


def _screen(output: Output, document: dict[str, Any]) -> None:
    a, b = document["a"], document["b"]
    scores = ", ".join(f"{one['overall_score']:g}/5 at {one['commit'][:12] or '-'}" for one in (a, b))
    sign = Styled("✓ equal", "green") if document["equal"] else Styled("✗ different", "red")
    output.line(sign, f": {scores}")
    if not document["same_rubric"]:
        output.line("  the audits have different rubrics")
    for one in document["criteria"]:
        before, after = ("-" if one[key] is None else f"{one[key]}/5" for key in ("a", "b"))
        change = Styled(one["change"], _STYLES[one["change"]]) if one["change"] in _STYLES else one["change"]
        output.line(f"  {before} → {after}  ", change, f"  {one['name']}")
        for key, mark in (("gone", "-"), ("new", "+")):
            for item in one[key]:
                found = "found" if item["found"] else "not found"
                output.line(f"    {mark} {item['goal']}: {found}, {item['location']}")
