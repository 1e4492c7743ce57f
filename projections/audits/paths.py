"""Where an audit's documents lie, relative to the workspace."""

from __future__ import annotations

import re
from typing import Final

from pmagent.projections.runs.paths import FORBIDDEN as NO_RUNS
from pmagent.projections.runs.paths import JOBS

FORBIDDEN: Final = NO_RUNS | {"runs"}
"""Folders of the workspace in which no audit leaves a report."""
MARKDOWN: Final = ".md"
DOCUMENT: Final = ".json"

_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_ENDINGS: Final = (MARKDOWN, DOCUMENT)
_PATH_BYTES_MAX: Final = 1_024
_NAME_BYTES_MAX: Final = 200


def report_path(output: str, audit_id: str) -> str:
    """The report's path without its ending: ``output``, or, where no report may lie there, one of the audit's own. Who
    asks for an audit is told before; this is for requests that nobody has looked at."""
    return output if usable(output, audit_id) else f"audit/report_{audit_id}"


def job_path(audit_id: str) -> str:
    """The job's path."""
    return f"{JOBS}/{audit_id}.json"


def usable(output: str, audit_id: str) -> bool:
    """Whether a report may lie there: inside of the workspace, written plainly, in no folder that rules something, in
    no run's (these bear its id), and not below what may be another report."""
    parts = output.split("/")
    return (
        not any(part in ("", ".", "..") or "\0" in part for part in parts)
        and parts[0].lower() not in FORBIDDEN
        and all(found == audit_id for found in _ID.findall(output))
        and not any(part.lower().endswith(_ENDINGS) for part in parts[:-1])
        and len(output.encode(errors="replace")) <= _PATH_BYTES_MAX
        and all(len(part.encode(errors="replace")) <= _NAME_BYTES_MAX for part in parts)
    )
