"""An audit's report as one file for a reader, a code host or a CI system: HTML, SARIF, JUnit (docs/audit.md).

Evidence, arguments and names are hostile. In HTML every text is escaped, the page runs no script and loads nothing, and
links lead only to the lines of the audited commit on hosts whose addresses are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Final
from xml.etree import ElementTree as ET

import msgspec

from pmagent.actors.audit.detectors.evidence.items import key_of
from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.justice.dissent import NAMES
from pmagent.audit.sarif import SarifResult, SarifRule, sarif
from pmagent.clean import clean_block, clean_line, json_bytes
from pmagent.contracts.audit import AuditReport, CriterionResult, Evidence, UnjudgedCriterion
from pmagent.projections.audits.front import (
    Step,
    criteria_of,
    flaws_of,
    front_lines,
    link_of,
    notes_of,
    place_of,
    reason_of,
    steps_of,
    title_of,
    verdict_of,
)
from pmagent.projections.audits.report import blocks
from pmagent.projections.core.markdown import code

PASSED: Final = 3.0
"""A criterion below this score is a failed case, where nobody names another."""
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


# --- SARIF ---------------------------------------------------------------------------------------------------------


def report_sarif(report: AuditReport, least: float | None = None, used: str = "") -> bytes:  # noqa: ARG001 - flaws only
    """The flaws with path and line; a flaw that several criteria name stands once."""
    results: dict[tuple[str, str], SarifResult] = {}
    for name in report.evidence:
        for item in flaws_of(report, name):
            found = place_of(item.location)
            if found is None:
                continue
            goal = GOALS[goal_id(item.goal)]
            level = "error" if goal.security else "warning"
            first = next(iter((item.content or item.rationale).splitlines()), "")
            text = clean_line(f"{title_of(item)}: {first.removeprefix(f'{item.location}: ')}")
            link = link_of(report, item.location)
            results.setdefault((goal.id, item.location), SarifResult(goal.id, level, text, *found, link))
    rules = {
        name: SarifRule("error" if goal.security else "warning", goal.title, goal.advice or goal.title)
        for name, goal in GOALS.items()
        if goal.kind == "flaw"
    }
    repository = report.origin or (report.repo_url if "://" in report.repo_url else "")
    made = sarif(rules, results.values(), repository, report.commit)
    return msgspec.json.format(json_bytes(made), indent=2) + b"\n"


# --- JUnit ---------------------------------------------------------------------------------------------------------


def report_junit(report: AuditReport, least: float | None = None, used: str = "") -> bytes:  # noqa: ARG001 - see FORMATS
    """A case for each criterion; it failed below ``least`` (None: 3), and was skipped where it was not judged."""
    threshold = PASSED if least is None else least
    failed = [one.dimension_id for one in report.criteria if one.final_score < threshold]
    counts = {
        "tests": str(len(report.criteria) + len(report.not_judged)),
        "failures": str(len(failed)), "skipped": str(len(report.not_judged)), "errors": "0",
    }  # fmt: skip
    top = ET.Element("testsuites", {"name": "pmagent audit", **counts})
    suite = ET.SubElement(top, "testsuite", {"name": _xml(report.rubric_name or "audit"), **counts})
    for one in criteria_of(report):
        case = ET.SubElement(
            suite, "testcase", {"classname": _xml(report.repo_url), "name": _xml(one.dimension_name)}
        )
        reason = _xml(reason_of(report, one))
        if isinstance(one, UnjudgedCriterion):
            ET.SubElement(case, "skipped", {"message": reason})
        elif one.dimension_id in failed:
            told = ET.SubElement(case, "failure", {"message": f"{one.final_score} of 5: {reason}"})
            told.text = _xml(one.remediation)
        else:
            ET.SubElement(case, "system-out").text = f"{one.final_score} of 5: {reason}"
    ET.indent(top)
    made: bytes = ET.tostring(top, encoding="utf-8", xml_declaration=True)
    return made + b"\n"


def _xml(text: str) -> str:
    return _NO_XML.sub("\ufffd", clean_block(text))


# --- a page for CI ---------------------------------------------------------------------------------------------------


def report_summary(report: AuditReport, least: float | None = None, used: str = "") -> bytes:
    """The report's first page as Markdown, at most 40 lines: for the summary of a CI job, or a comment."""
    commit = f", commit {code(report.commit[:12])}" if report.commit else ""
    head = ["# Audit Report", "", f"**Repository:** {code(report.repo_url)}{commit}", ""]
    return ("\n".join([*head, *front_lines(report, used, least)]) + "\n").encode()


# --- HTML ----------------------------------------------------------------------------------------------------------

_STYLE: Final = """
body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ccc;padding:.3rem .6rem;text-align:left;
vertical-align:top;overflow-wrap:anywhere}pre{background:#f3f3f3;padding:.5rem;white-space:pre-wrap;overflow-wrap:anywhere}
summary{cursor:pointer;font-weight:600;padding:.3rem 0}h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}
.score{white-space:nowrap;font-weight:600}details details{margin-left:1rem}code{overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#262626}a{color:#8ab4f8}}
""".strip()


def report_html(report: AuditReport, least: float | None = None, used: str = "") -> bytes:
    """One page: on top the verdict, a line for each criterion, and what to do first; the rest is folded. ``least``: the
    overall score that was asked for; ``used``: the models' calls, tokens and price."""
    below = "" if least is None or report.overall_score >= least else f" (below {least:g})"
    rest = [text for _, lines in blocks(report.executive_summary) for text in lines][1:]
    beside = "".join(f"<th>{_text(one.engine)}</th>" for one in report.beside)
    rows = "".join(
        f"<tr><td>{_text(one.dimension_name)}</td><td class=score>{_score(one)}</td>"
        + "".join(f"<td class=score>{each.scores.get(one.dimension_id, '-')}</td>" for each in report.beside)
        + f"<td>{_text(reason_of(report, one))}</td></tr>\n"
        for one in criteria_of(report)
    )
    steps = "".join(f"<li>{_step_html(report, one)}</li>\n" for one in steps_of(report))
    page = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Audit Report</title>',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width">',
        f"<style>{_STYLE}</style></head><body><main>",
        f"<h1>Audit Report: {report.overall_score:.1f}/5{below}</h1>",
        f"<p>{_origin(report)}</p>",
        f"<p>{_text(verdict_of(report))}</p>",
        *(f"<p>{_text(told)}</p>" for told in notes_of(report, used)),
        f"<table><tr><th>Criterion</th><th>Score</th>{beside}<th>Reason</th></tr>\n{rows}</table>",
        f"<h2>To do first</h2><ol>{steps}</ol>" if steps else "",
        "<h2>Details</h2>",
        _fold("Summary", "".join(f"<p>{_text(line)}</p>" for line in rest)),
        *(_criterion(report, one) for one in criteria_of(report)),
        f"<p>Audit <code>{_text(report.audit_id)}</code>, report <code>{_text(report.report_sha256)}</code></p>",
        "</main></body></html>\n",
    ]
    return "\n".join(filter(None, page)).encode()


def _origin(report: AuditReport) -> str:
    rubric = f"{_text(report.rubric_name)} {_text(report.rubric_version)}"
    commit = f"<code>{_text(report.repo_url)}</code>, commit <code>{_text(report.commit[:12])}</code>"
    return f"{commit}, judged by {_text(report.engine)}, rubric {rubric}"


def _criterion(report: AuditReport, one: CriterionResult | UnjudgedCriterion) -> str:
    parts = []
    for opinion in one.judge_opinions:
        cited = ", ".join(f"<code>{_text(key)}</code>" for key in opinion.cited_evidence)
        aside = " (set aside)" if opinion.judge in one.set_aside else ""
        parts.append(
            f"<p><b>{NAMES[opinion.judge]}: {opinion.score}/5{aside}</b> {_text(opinion.argument)}</p>"
            f"<p>Cites: {cited or 'nothing'}</p>"
        )
    if one.dissent_summary:
        parts.append(f"<p><b>Dissent:</b> {_text(one.dissent_summary)}</p>")
    if isinstance(one, CriterionResult):
        changed = [rule for rule in one.rules if rule.before != rule.after]
        parts += [f"<p><code>{_text(rule.rule)}</code>: {_text(rule.text)}</p>" for rule in changed]
        listed = "".join(f"<li>{_text(line)}</li>" for line in one.remediation.splitlines() if line.strip())
        parts.append(f"<p><b>Remediation:</b></p><ul>{listed}</ul>")
    items = "".join(
        _item(report, key_of(one.dimension_id, number), item)
        for number, item in enumerate(report.evidence.get(one.dimension_id, ()), 1)
    )
    parts.append(_fold("Evidence", items))
    return _fold(f"{one.dimension_name}: {_score(one)}", "".join(parts))


def _item(report: AuditReport, key: str, item: Evidence) -> str:
    appeals = "".join(f"<p><b>Appeal:</b> {_text(one.because)}</p>" for one in report.appeals if key in one.keys)
    content = f"<pre>{_text(item.content)}</pre>" if item.content else ""
    found = "found" if item.found else "not found"
    head = f"<code>{_text(key)}</code> {_text(item.goal)}: <b>{found}</b>, confidence {item.confidence:g}"
    return f"<p>{head}, {_place(report, item.location)}</p><p>{_text(item.rationale)}</p>{appeals}{content}\n"


def _step_html(report: AuditReport, one: Step) -> str:
    function = f", in <code>{_text(one.function)}</code>" if one.function else ""
    where = f"{_place(report, one.where)}{function}: " if one.where else ""
    return f"{where}{_text(one.text)} <i>({_text(one.criterion)})</i>"


def _place(report: AuditReport, location: str) -> str:
    link = link_of(report, location)
    shown = f"<code>{_text(location)}</code>"
    return f'<a href="{escape(link)}" rel="noreferrer">{shown}</a>' if link else shown


def _fold(title: str, content: str) -> str:
    return f"<details><summary>{_text(title)}</summary>\n{content}</details>\n"


def _score(one: CriterionResult | UnjudgedCriterion) -> str:
    return f"{one.final_score}/5" if isinstance(one, CriterionResult) else "not judged"


def _text(text: str) -> str:
    return escape(clean_block(text))


FORMATS: Final[Mapping[str, Callable[[AuditReport, float | None, str], bytes]]] = {
    ".html": report_html, ".sarif": report_sarif, ".junit.xml": report_junit, ".summary.md": report_summary,
}  # fmt: skip
"""The renderer of a report's file, by the ending of its name."""
