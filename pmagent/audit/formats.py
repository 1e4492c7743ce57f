"""An audit's report as one file for a reader, a code host or a CI system: HTML, SARIF, JUnit (docs/audit.md).

Evidence, arguments and names are hostile. In HTML every text is escaped, the page runs no script and loads nothing, and
links lead only to the lines of the audited commit on hosts whose addresses are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

import msgspec
from markupsafe import Markup

from pmagent.actors.audit.detectors.evidence.items import key_of
from pmagent.actors.audit.goals import GOALS, goal_id
from pmagent.actors.audit.justice.dissent import NAMES
from pmagent.audit.sarif import SarifResult, SarifRule, sarif
from pmagent.clean import clean_block, clean_line, json_bytes
from pmagent.contracts.audit import AuditReport, UnjudgedCriterion
from pmagent.projections.audits.front import (
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

if TYPE_CHECKING:
    from jinja2 import Template

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

def report_html(report: AuditReport, least: float | None = None, used: str = "") -> bytes:
    """One page: on top the verdict, a line for each criterion, and what to do first; the rest is folded. ``least``: the
    overall score that was asked for; ``used``: the models' calls, tokens and price."""
    summary = [text for _, lines in blocks(report.executive_summary) for text in lines][1:]
    return _page().render(
        report=report, below="" if least is None or report.overall_score >= least else f" (below {least:g})",
        verdict=verdict_of(report), notes=notes_of(report, used), criteria=criteria_of(report), steps=steps_of(report),
        summary=summary, names=NAMES, key_of=key_of, link_of=link_of, reason_of=reason_of,
    ).encode()  # fmt: skip


@cache
def _page() -> Template:
    from jinja2 import Environment, StrictUndefined

    text = Path(__file__).with_name("templates").joinpath("report.html").read_text("utf-8")
    made = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=_text, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    return made.from_string(text)


def _text(value: object) -> Markup:
    """A value as the page shows it: escaped, and clean."""
    return value if isinstance(value, Markup) else Markup(escape(clean_block(str(value))))  # noqa: S704 - just escaped


FORMATS: Final[Mapping[str, Callable[[AuditReport, float | None, str], bytes]]] = {
    ".html": report_html, ".sarif": report_sarif, ".junit.xml": report_junit, ".summary.md": report_summary,
}  # fmt: skip
"""The renderer of a report's file, by the ending of its name."""
