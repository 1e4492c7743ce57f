"""Projection: what audits leave, ``<output>.md``, ``<output>.json`` and ``jobs/<audit_id>.json``
(docs/design.md §15.10).

An audit's job exists from its request on; its report when it has concluded: a failed audit has none. Of two audits with
the same output the report is of the one that concluded last.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pmagent.contracts.audit_events import AuditRequested
from pmagent.events.event import Event, LogCreated
from pmagent.projections.audits import fold
from pmagent.projections.audits.job import job as job_document
from pmagent.projections.audits.paths import DOCUMENT, MARKDOWN, job_path
from pmagent.projections.core.projection import Part
from pmagent.projections.views.audits import Audit
from pmagent.projections.views.jobs import JobDocuments, JobsView

AUDITS_KEPT: Final = 16
"""So many ended audits stay in the state, the newest: after a crash it is seen whether their documents are there."""
ITEMS_KEPT: Final = 5_000
"""Fewer stay if they hold more evidence and opinions than this together; the newest always stays."""


class AuditsView(JobsView[Audit], frozen=True):
    """See JobsView."""


class Audits(JobDocuments[Audit]):
    """The documents of all audits. ``kept`` and ``items`` bound the ended audits that stay in the state."""

    name = "audits"
    hears = frozenset((LogCreated, AuditRequested, *fold.HANDLERS, *fold.COUNTED))
    state = AuditsView
    request = AuditRequested
    id_field = "audit_id"

    def __init__(self, kept: int = AUDITS_KEPT, items: int = ITEMS_KEPT) -> None:
        super().__init__(kept, items)

    def begun(self, event: Event, sum: str) -> Audit:
        """See JobDocuments."""
        return fold.requested(event, sum)

    def evolved(self, job: Audit, event: Event, sum: str) -> Audit:
        """See JobDocuments."""
        return fold.evolved(job, event, sum)

    def others(self, jobs: dict[str, Audit], job: Audit) -> dict[str, Audit]:
        """The audits, of which those that had their report where ``job`` has its own now have none any more."""
        if job.concluded is None:
            return jobs
        return {
            name: msgspec.structs.replace(one, superseded=True)
            if one.path == job.path and one.concluded is not None and not one.superseded
            else one
            for name, one in jobs.items()
        }

    def parts(self, job: Audit, before: Audit | None, log_id: str) -> dict[str, Part]:  # noqa: ARG002 - all are small
        """See JobDocuments."""
        found = {job_path(job.id): Part(job_document, (job,), job.id)}
        if job.concluded is not None and not job.superseded:
            found |= {job.path + ending: Part(made, (job, log_id), job.id) for ending, made in _REPORT.items()}
        return found


def report_files(audit: Audit, log_id: str) -> dict[str, bytes]:
    """The report of an audit that has concluded, by the ending of its file's name."""
    return {ending: made(audit, log_id) for ending, made in _REPORT.items()}


def _markdown(audit: Audit, log_id: str) -> bytes:
    from pmagent.projections.audits.rebuilt import provenance_of, report_of  # pydantic, when the first report is there
    from pmagent.projections.audits.report import report_markdown

    return report_markdown(report_of(audit), provenance_of(audit, log_id)).encode()


def _document(audit: Audit, log_id: str) -> bytes:
    from pmagent.projections.audits.rebuilt import provenance_of, report_of
    from pmagent.projections.audits.report import report_json

    return report_json(report_of(audit), provenance_of(audit, log_id))


_REPORT: Final = {MARKDOWN: _markdown, DOCUMENT: _document}
"""A report's files, by the endings of their names."""
