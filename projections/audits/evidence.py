"""The evidence in the report, by dimension: each with its key, its place, and what was seen there; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pmagent.actors.audit.justice.scores import shown
from pmagent.contracts.audit import AuditReport, Evidence
from pmagent.projections.audits.front import linked
from pmagent.projections.core.markdown import code, cut, fenced, inline

CONTENT_LINES_MAX: Final = 20
CONTENT_LINE_CHARS_MAX: Final = 500
"""So much of an item's content is shown here; the .json has all of it."""


def evidence_lines(report: AuditReport) -> Iterator[list[str]]:
    """A section of its own for each dimension."""
    yield ["## Evidence", "", "Facts that the detectives found, or looked for in vain; the keys are what judges cite."]
    for name, items in report.evidence.items():
        lines = [f"### Evidence: {inline(name, 200)}"]
        for number, item in enumerate(items, 1):
            lines += ["", *_item(report, f"{name}#{number}", item)]
        yield lines


def _item(report: AuditReport, key: str, item: Evidence) -> list[str]:
    found = "found" if item.found else "not found"
    sure = f"confidence {shown(item.confidence)}"
    head = f"**{code(key, 200)}** {inline(item.goal, 500)}: **{found}**, {sure}, {linked(report, item.location)}"
    lines = [head, "", f"Rationale: {inline(item.rationale, 1_000)}"]
    for one in report.appeals:
        if key in one.keys:
            lines += ["", f"**Appeal:** {inline(one.because, 1_000)}"]
    if item.content:
        lines_shown, more = excerpt(item.content)
        lines += ["", *fenced([*lines_shown, *([f"… {more} more lines"] if more else [])])]
    return lines


def excerpt(content: str) -> tuple[list[str], int]:
    """The first lines of an item's content, cut short, and how many more there are."""
    lines = content.splitlines()
    return [cut(line, CONTENT_LINE_CHARS_MAX) for line in lines[:CONTENT_LINES_MAX]], len(lines[CONTENT_LINES_MAX:])
