"""The documents that a history of audits leads to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pmagent.contracts.content import whole
from pmagent.events.event import Event
from pmagent.projections.audits.audits import Audits, AuditsView
from pmagent.projections.core.documents import Documents
from pmagent.projections.views.audits import Audit
from tests.support.audits import AUDIT
from tests.support.orchestra import START
from tests.support.run_folders import CREATED, sums

JOB = f"jobs/{AUDIT}.json"
REPORT = "audit/report_agent.md"
DOCUMENT = "audit/report_agent.json"


def folded(events: Sequence[Event], documents: Documents | None = None, projection: Audits | None = None) -> Documents:
    """The documents after these events, which follow those that ``documents`` have seen already."""
    if documents is None:
        documents = Documents([projection or Audits()])
        documents.fold([Event(0, START, "log", "fact", "log", "log.created", "", 0, CREATED, b"")], ["0" * 64])
    documents.fold(events, sums(events))
    return documents


def shown(documents: Documents) -> dict[str, bytes]:
    """All of them."""
    return {path: whole(content, None) for path, content in documents.render().items()}  # type: ignore[arg-type]


def text(events: Sequence[Event], path: str = REPORT) -> str:
    """A document after these events."""
    return shown(folded(events))[path].decode()


def value(events: Sequence[Event], path: str = JOB) -> Any:
    """The content of a JSON document."""
    return json.loads(text(events, path))


def view(events: Sequence[Event], audit_id: str = AUDIT) -> Audit:
    """The projection's view of an audit."""
    state = folded(events)._states["audits"]
    assert isinstance(state, AuditsView)
    return state.jobs[audit_id]


def copied(documents: Documents, projection: Audits) -> Documents:
    """The documents that a start from the snapshot cache would have."""
    other = Documents([projection])
    other.restore(other.decoded(documents.export()))
    return other
