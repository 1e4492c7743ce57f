"""An audit's report for people (Markdown) and for programs (JSON); pure, and the same bytes for the same report.

Evidence comes from a repository and a PDF, arguments from models, names and patterns from a rubric: all of it is
hostile, and passes ``pmagent.projections.core.markdown``, so that none of it becomes a heading, a link, an image or
HTML.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pmagent.contracts.audit import AuditReport, CriterionResult, UnjudgedCriterion
from pmagent.projections.audits.criterion import Known, criterion_lines, unjudged_lines
from pmagent.projections.audits.evidence import evidence_lines
from pmagent.projections.audits.front import front_lines
from pmagent.projections.core.markdown import code, inline, table
from pmagent.projections.runs import json
from pmagent.projections.views.audits import used_text

NONE: Final = "-"
_LINE_CHARS: Final = 1_000
CHANGED: Final = {
    "fact_supremacy": "facts over opinions",
    "variance_re_evaluation": "second round",
    "functionality_weight": "Tech Lead's weight",
    "median": "rounding",
    "security_override": "security",
    "clamp": "bounds",
}


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of the log about a report beyond the report itself. Rebuilding the log ``log_id`` up to ``position``, whose
    line has ``sum``, gives the same bytes."""

    pdf_path: str
    rubric_source: str
    vision_model: str
    requested_at: str
    concluded_at: str
    log_id: str
    position: int
    sum: str
    used: dict[str, Any] = {}


def report_markdown(report: AuditReport, provenance: Provenance | None = None) -> str:
    """The report as Markdown (docs/design.md §15.10). ``provenance`` None: it does not come from a log."""
    used = used_text(provenance.used) if provenance is not None else ""
    sections = [
        ["# Audit Report", "", f"**Repository:** {code(report.repo_url)}"],
        ["## Executive Summary", "", *front_lines(report, used)],
        ["---"],
        *_breakdown(report),
        ["## Remediation Plan", "", *paragraphs(report.remediation_plan)],
        *evidence_lines(report),
        _provenance(report, provenance),
    ]
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def report_json(report: AuditReport, provenance: Provenance | None = None) -> bytes:
    """The report as JSON: ``report`` is ``AuditReport.model_dump()``, ``provenance`` what the log adds (or null)."""
    return json.document({"report": report.model_dump(mode="json"), "provenance": provenance})


# --- sections ------------------------------------------------------------------------------------------------------


def _breakdown(report: AuditReport) -> Iterator[list[str]]:
    """Every dimension of the rubric, in its order."""
    known: Known = {f"{name}#{n}": item for name, items in report.evidence.items() for n, item in enumerate(items, 1)}
    results: dict[str, CriterionResult | UnjudgedCriterion] = {one.dimension_id: one for one in report.criteria}
    results |= {one.dimension_id: one for one in report.not_judged}
    ordered = [*(results.pop(name) for name in list(report.evidence) if name in results), *results.values()]
    yield ["## Criterion Breakdown", "", *paragraphs(report.executive_summary)]
    for one in ordered:
        if isinstance(one, CriterionResult):
            yield criterion_lines(one, known)
        else:
            yield unjudged_lines(one, known)


def blocks(text: str) -> list[tuple[str, list[str]]]:
    """A text of ours that names what is not ours: paragraphs (``p``) and lists (``ul``) of lines. A line that begins
    with ``- `` is one of a list."""
    made: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        item = line.startswith("- ")
        if item and made and made[-1][0] == "ul":
            made[-1][1].append(line[2:])
        elif line.strip():
            made.append(("ul", [line[2:]]) if item else ("p", [line]))
    return made


def paragraphs(text: str) -> list[str]:
    """The blocks of a text, a blank line between each two."""
    lines: list[str] = []
    for kind, texts in blocks(text):
        lines += ["", *(("- " if kind == "ul" else "") + inline(line, _LINE_CHARS) for line in texts)]
    return lines[1:] or ["-"]


def _provenance(report: AuditReport, given: Provenance | None) -> list[str]:
    rows = [
        ("Audit", code(report.audit_id) or NONE),
        ("Judged by", inline(report.engine, 200) or NONE),
        ("Rubric", f"{inline(report.rubric_name, 200) or NONE}, version {inline(report.rubric_version, 50) or NONE}"),
        ("Repository", code(report.repo_url)),
        ("Audited commit", code(report.commit) or NONE),
        ("SHA-256 of the report that was audited", code(report.report_sha256) or NONE),
    ]
    rows += _from_log(given) if given is not None else [("Log", "none: judged outside of a log")]
    return ["## Provenance", "", *table(("What", "Value"), rows)]


def _from_log(given: Provenance) -> list[tuple[str, Any]]:
    return [
        ("Its path", code(given.pdf_path)),
        ("Rubric from", code(given.rubric_source) or NONE),
        ("Images looked at by", inline(given.vision_model, 200) or "nobody"),
        ("Requested", given.requested_at),
        ("Concluded", given.concluded_at),
        ("Log", code(given.log_id)),
        ("Can be rebuilt from", f"position {given.position} of the log"),
        ("Its sum", code(given.sum)),
        ("Models", used_text(given.used) or "none was asked"),
    ]
