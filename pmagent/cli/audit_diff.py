"""``pmagent audit diff``: which criteria went up or down from one audit to another, and which evidence changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from pmagent.cli.frame import App, Command, format_option, pass_app
from pmagent.cli.inputs import BadInput, id_prefix
from pmagent.cli.output import Output, Styled
from pmagent.cli.shell import complete_jobs
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import AUDITS

if TYPE_CHECKING:
    from pmagent.contracts.audit import AuditReport, Evidence

_STYLES: Final = {"up": "green", "down": "red"}


@click.command("audit diff", cls=Command, example=["pmagent audit diff 5b0c7a52 77e1d004 --format json"])
@click.argument("a", shell_complete=partial(complete_jobs, only=[AUDITS]))
@click.argument("b", shell_complete=partial(complete_jobs, only=[AUDITS]))
@format_option()
@pass_app
def diff(app: App, a: str, b: str, format: str) -> int:
    """Compare the reports of the audits A and B: criteria that went up or down, and the evidence that changed.

    A and B are ids, or their beginnings, as `pmagent audits` shows them. Evidence is equal when its goal, its file and
    whether it was found are: a line that moved is no change. Only the log is read. A repository in a folder named diff
    is ./diff. Exit 0: equal. 1: different. 2: one of them has no report."""
    from pmagent.jobs.catalogue import ALL, Catalogue

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


def compared(a: AuditReport, b: AuditReport) -> dict[str, Any]:
    """The differences in ``b``. ``criteria`` holds only those with another score, or other evidence."""
    names = {one.dimension_id: one.dimension_name for report in (a, b) for one in _all(report)}
    scores_a, scores_b = _scores(a), _scores(b)
    criteria = []
    for name, title in names.items():
        gone, new = _changed(a.evidence.get(name, ()), b.evidence.get(name, ()))
        change = _change(name, scores_a, scores_b)
        if change != "equal" or gone or new:
            criteria.append({
                "dimension_id": name, "name": title, "change": change,
                "a": scores_a.get(name), "b": scores_b.get(name), "gone": gone, "new": new,
            })  # fmt: skip
    same_rubric = (a.rubric_name, a.rubric_version) == (b.rubric_name, b.rubric_version)
    return {
        "equal": not criteria and a.overall_score == b.overall_score,
        "a": _head(a), "b": _head(b), "same_rubric": same_rubric, "criteria": criteria,
    }  # fmt: skip


def _all(report: AuditReport) -> Iterator[Any]:
    yield from report.criteria
    yield from report.not_judged


def _head(report: AuditReport) -> dict[str, Any]:
    return {
        "audit_id": report.audit_id, "repo_url": report.repo_url, "commit": report.commit, "engine": report.engine,
        "overall_score": report.overall_score,
    }  # fmt: skip


def _scores(report: AuditReport) -> dict[str, int | None]:
    return {one.dimension_id: getattr(one, "final_score", None) for one in _all(report)}


def _change(name: str, a: dict[str, int | None], b: dict[str, int | None]) -> str:
    """up, down, equal; added, removed: of the rubric; judged, not judged: only one of the audits could."""
    if name not in a or name not in b:
        return "added" if name in b else "removed"
    before, after = a[name], b[name]
    if before is None or after is None:
        return "equal" if before == after else "judged" if before is None else "not judged"
    return "equal" if before == after else "up" if after > before else "down"


def _changed(a: Sequence[Evidence], b: Sequence[Evidence]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The evidence that only one of them has."""
    known_a, known_b = _known(a), _known(b)
    gone = [_shown(item) for key, item in known_a.items() if key not in known_b]
    return gone, [_shown(item) for key, item in known_b.items() if key not in known_a]


def _known(items: Sequence[Evidence]) -> dict[tuple[str, bool, str], Evidence]:
    """The evidence of a goal, by what must be equal. A commit is another one each time, and is left out."""
    from pmagent.actors.audit.goals import GOALS, goal_id

    found = {}
    for item in items:
        goal = GOALS.get(goal_id(item.goal))
        if goal is None or goal.kind != "context":
            path, _, line = item.location.rpartition(":")
            place = path if line.isdecimal() else item.location
            is_commit = len(place) in (40, 64) and set(place) <= set("0123456789abcdef")
            found[item.goal, item.found, "" if is_commit else place] = item
    return found


def _shown(item: Evidence) -> dict[str, Any]:
    return {"goal": item.goal, "found": item.found, "location": item.location}


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
