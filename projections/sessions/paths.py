"""Where a session's documents lie, relative to the workspace."""

from __future__ import annotations

import re
from typing import Final

from pmagent.projections.runs.paths import JOBS, SESSIONS

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{8,64}", re.ASCII)


def usable(session_id: str) -> bool:
    """Whether a session's id can be a file's name."""
    return _NAME.fullmatch(session_id) is not None


def log_path(session_id: str) -> str:
    """The session log's path."""
    return f"{SESSIONS}/{session_id}.jsonl"


def violations_path(session_id: str) -> str:
    """The path of its violations."""
    return f"{SESSIONS}/{session_id}.violations.jsonl"


def job_path(session_id: str) -> str:
    """The job's path."""
    return f"{JOBS}/{session_id}.json"
