"""The report's first page: the verdict, each criterion in a line, what to do first; for Markdown, HTML and CI; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from string import ascii_letters, digits
from typing import Final, NamedTuple

from pmagent.actors.audit.detectors.evidence.items import key_of
from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.justice.remedy import NOTHING
from pmagent.actors.audit.justice.text import EXTREMES
from pmagent.contracts.audit import SCORE_MAX, AuditReport, CriterionResult, Evidence, UnjudgedCriterion
from pmagent.projections.core.markdown import code, inline, table

FIRST: Final = 5
"""So many things to do are named on top."""
LINES_MAX: Final = 40
"""Lines of the page; of many criteria only the weakest stand on it."""
_AROUND: Final = 14
"""Lines of headings, and blank ones."""
APART: Final = 2
"""Scores so far apart are named."""
REASON_CHARS: Final = 240
_PER_CRITERION: Final = 2
_LINE: Final = re.compile(r"(?P<path>[^:]+(?:\.[^:./]+|/[^:]+)?):(?P<line>[1-9]\d{0,8})")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_FUNCTION: Final = re.compile(r"\b(?:def|class) (\w+)|\b(\w+)\(\)")
_IN: Final = re.compile(r"; in (\w+)\(\)$")
_KEY: Final = re.compile(r" \(([^()\s]+#\d+)\)$")
ORIGIN: Final = re.compile(
    r"(?:https://|ssh://(?:\w+@)?|\w+@)(github\.com|gitlab\.com|bitbucket\.org|codeberg\.org)[/:]([\w.~/-]+?)(?:\.git)?/?"
)
_UNRESERVED: Final = frozenset(f"/-._~{ascii_letters}{digits}")
"""Addresses of repositories on hosts whose addresses of lines are known; none with a password."""
_HOSTS: Final = {
    "github.com": ("/blob/{}/", "#L{}"),
    "gitlab.com": ("/-/blob/{}/", "#L{}"),
    "bitbucket.org": ("/src/{}/", "#lines-{}"),
    "codeberg.org": ("/src/commit/{}/", "#L{}"),
}


class Step(NamedTuple):
    """Something to do: its text; where (``path:line``, a page, or ""), in which function as far as the evidence shows
    it, and for which criterion."""

    text: str
    where: str
    function: str
    criterion: str


def link_of(report: AuditReport, location: str) -> str:
    """The address of a ``path:line`` in the audited commit; "" where the repository's host is not known."""
    origin, found = ORIGIN.fullmatch(report.origin or report.repo_url), place_of(location)
    if origin is None or found is None or not _COMMIT.fullmatch(report.commit):
        return ""
    path, line = found
    before, after = _HOSTS[origin[1]]
    return f"https://{origin[1]}/{origin[2]}{before.format(report.commit)}{_quoted(path)}{after.format(line)}"


def _quoted(path: str) -> str:
    """The path as part of an address (RFC 3986): all but unreserved characters and "/" by their bytes."""
    return "".join(one if one in _UNRESERVED else "".join(f"%{byte:02X}" for byte in one.encode()) for one in path)


def place_of(location: str) -> tuple[str, int] | None:
    """Path and line of a location in the code; None: it is another kind of location."""
    found = _LINE.fullmatch(location)
    return (found["path"], int(found["line"])) if found is not None else None


def reason_of(report: AuditReport, one: CriterionResult | UnjudgedCriterion) -> str:
    """Why the criterion has its score, in one line: the flaws that were found, then what is missing."""
    if isinstance(one, UnjudgedCriterion):
        return f"not judged: {one.reason}"
    told = [f"{title_of(item)} ({item.location})" for item in flaws_of(report, one.dimension_id)]
    told += [f"missing: {title_of(item)}" for item in report.evidence.get(one.dimension_id, ()) if _is_missing(item)]
    more = f", and {len(told) - 3} more" if len(told) > 3 else ""
    return "; ".join(told[:3]) + more or "everything that was looked for is there"


def steps_of(report: AuditReport) -> list[Step]:
    """The things to do first: flaws of security, then the weakest criteria, at most two of each before a third."""
    found = []
    for one in report.criteria:
        items = report.evidence.get(one.dimension_id, ())
        known = {key_of(one.dimension_id, number): item for number, item in enumerate(items, 1)}
        lines = [line for line in one.remediation.splitlines() if line.strip() and line != NOTHING]
        for number, line in enumerate(lines):
            key = _KEY.search(line)
            item = known.get(key[1]) if key is not None else None
            if item is None or key is None:
                continue  # the rest of a long list, or a judge's words
            found.append((
                not (item.found and GOALS[goal_id(item.goal)].security), number // _PER_CRITERION, one.final_score,
                number, _step(line[: key.start()], item, known.values(), one.dimension_name),
            ))  # fmt: skip
    found.sort(key=lambda entry: entry[:4])
    return [entry[4] for entry in found[:FIRST]]


def _step(line: str, item: Evidence, items: Iterable[Evidence], criterion: str) -> Step:
    """A line of remediation, taken apart: its place is that of a flaw, or of something near what is missing."""
    head, colon, rest = line.removeprefix("near ").partition(": ")
    at = next((one for one in (item, *items) if one.location == head), None) if colon else None
    if at is None:
        return Step(line, "", "", criterion)
    found = _IN.search(at.rationale) or _FUNCTION.search(at.content or "")
    function = next(filter(None, found.groups()), "") if found is not None else ""
    return Step(rest, head, function, criterion)


def front_lines(report: AuditReport, used: str = "", least: float | None = None) -> list[str]:
    """The page as Markdown, of at most 40 lines. ``used``: the models' calls, tokens and price; ``least``: the overall
    score that was asked for."""
    below = "" if least is None or report.overall_score >= least else f" (below {least:g})"
    lines = [f"**Overall Score:** {report.overall_score:.1f}/5{below}", "", inline(verdict_of(report), 1_000)]
    for told in notes_of(report, used):
        lines += ["", inline(told, 1_000)]
    steps = [f"{number}. {_step_line(report, one)}" for number, one in enumerate(steps_of(report), 1)]
    every = criteria_of(report)
    room = LINES_MAX - _AROUND - len(lines) - len(steps)
    shown = sorted(every, key=lambda one: getattr(one, "final_score", SCORE_MAX + 1))[:room]
    heads = ["Criterion", "Score", *(one.engine for one in report.beside), "Reason"]
    lines += ["", *table([inline(one, 60) for one in heads], [_row(report, one) for one in every if one in shown])]
    if len(shown) < len(every):
        lines += ["", f"The weakest {len(shown)} of {len(every)} criteria."]
    return [*lines, "", "**To do first:**", "", *steps] if steps else lines


def verdict_of(report: AuditReport) -> str:
    """The verdict, in a sentence or two: the summary up to where it goes into criteria."""
    return " ".join(takewhile(lambda one: not one.startswith(EXTREMES), report.executive_summary.split("\n\n")))


def notes_of(report: AuditReport, used: str) -> Iterator[str]:
    """Facts to know with the verdict: answers that are missing, where others score otherwise, appeals, and costs."""
    without = [one.dimension_name for one in report.not_judged if one.unanswered]
    if without:
        yield f"Without an answer of a judge's model, and not judged: {', '.join(without)}."
    for one in report.beside:
        total = "-" if one.overall_score is None else f"{one.overall_score:.1f}/5"
        apart = [each.dimension_name for each in report.criteria
                 if abs(each.final_score - one.scores.get(each.dimension_id, each.final_score)) >= APART]  # fmt: skip
        differs = f"; {APART} points or more apart: {', '.join(apart)}" if apart else ""
        yield f"On the same evidence {one.engine}: {total}{differs}."
    if report.appeals:
        about = {key for one in report.appeals for key in one.keys}
        idle = sum(not one.keys for one in report.appeals)
        more = f"; {idle} of the appeals match nothing" if idle else ""
        yield f"Appealed against, and counted all the same: {', '.join(sorted(about)) or 'nothing'}{more}."
    if used:
        yield f"Models: {used}."


def _row(report: AuditReport, one: CriterionResult | UnjudgedCriterion) -> list[str]:
    score = f"{one.final_score}/5" if isinstance(one, CriterionResult) else "-"
    beside = [str(each.scores.get(one.dimension_id, "-")) for each in report.beside]
    return [inline(one.dimension_name, 80), score, *beside, inline(reason_of(report, one), REASON_CHARS)]


def _step_line(report: AuditReport, one: Step) -> str:
    function = f", in {code(f'{one.function}()')}" if one.function else ""
    where = f"{linked(report, one.where)}{function}: " if one.where else ""
    return f"{where}{inline(one.text, 300)} ({inline(one.criterion, 80)})"


def linked(report: AuditReport, location: str) -> str:
    """The location as code, and as a link to its line where the host is known."""
    link = link_of(report, location)
    return f"[{code(location, 300)}]({link})" if link else code(location, 300)


def criteria_of(report: AuditReport) -> list[CriterionResult | UnjudgedCriterion]:
    """All criteria, those that were judged first."""
    return [*report.criteria, *report.not_judged]


def title_of(item: Evidence) -> str:
    """The goal that was looked for, in words."""
    return item.goal.partition(": ")[2] or item.goal


def flaws_of(report: AuditReport, dimension_id: str) -> Iterator[Evidence]:
    """The flaws that were found."""
    for item in report.evidence.get(dimension_id, ()):
        goal = GOALS.get(goal_id(item.goal))
        if goal is not None and goal.kind == "flaw" and item.found and item.confidence:
            yield item


def _is_missing(item: Evidence) -> bool:
    goal = GOALS.get(goal_id(item.goal))
    return goal is not None and goal.kind == "asset" and not item.found and bool(item.confidence)


