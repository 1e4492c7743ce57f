"""A session in the shape in which every service tells of its jobs (docs/design.md §17); pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pmagent.contracts.jobs import JobError, JobStatus
from pmagent.projections.runs import json
from pmagent.projections.sessions.paths import log_path, violations_path
from pmagent.projections.sessions.words import words
from pmagent.projections.views.sessions import Session

SERVICE: Final = "hexforge-pla"


def job(session: Session) -> bytes:
    """``jobs/<session_id>.json``."""
    return json.document(job_status(session))


def job_status(session: Session) -> JobStatus:
    """How the session stands: queued until something is asked for in it, running until it ends. How much of it is done
    nobody knows before, so that ``progress`` is left out."""
    made: dict[str, Any] = {"message": _message(session)}
    if session.state == "failed":
        made["error"] = JobError(code="cut_off", detail=words(session.reason) or "no reason is given")
    elif session.state == "complete":
        made["progress"] = 1.0
        made["result"] = {
            "log": log_path(session.session_id),
            "entries": session.log.entries,
            "checksum": session.log.tail,
            **({"violations": violations_path(session.session_id)} if session.violations.entries else {}),
            **msgspec.structs.asdict(session.tally),
        }
    return JobStatus(
        job_id=session.session_id, status=session.state, service=SERVICE, updated_at=session.updated, **made
    )


def _message(session: Session) -> str:
    tally: dict[str, int] = msgspec.structs.asdict(session.tally)
    counted = [f"{name.replace('_', ' ')}: {count}" for name, count in tally.items() if count]
    summary = ", ".join(counted) or "nothing was proposed"
    if session.over:
        return f"the session has ended; {summary}"
    return "the session stands" if session.state == "queued" else f"the mode is {session.mode}; {summary}"
