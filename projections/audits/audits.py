"""Projection: what audits leave, ``<output>.md``, ``<output>.json`` and ``jobs/<audit_id>.json``
(docs/design.md §15.10).

An audit's job exists from its request on; its report when it has concluded: a failed audit has none. Of two audits with
the same output the report is of the one that concluded last.
"""

from __future__ import annotations

from typing import Final

import msgspec

from contracts.audit_events import AuditRequested
from events.event import Event, LogCreated
from projections.audits import fold
from projections.audits.job import job
from projections.audits.places import DOCUMENT, MARKDOWN, job_path
from projections.audits.view import Audit
from projections.projection import Part

AUDITS_KEPT: Final = 16
"""So many ended audits stay in the state, the newest: after a crash it is seen whether their documents are there."""
ITEMS_KEPT: Final = 5_000
"""Fewer stay if they hold more evidence and opinions than this together; the newest always stays."""


class AuditsView(msgspec.Struct, frozen=True):
    """The log's id, and audits by id: open ones, and the newest of those that have ended (``ended``, in the order of
    their ends). ``gone``: an audit whose id another one has taken, until it is retired."""

    log_id: str = ""
    audits: dict[str, Audit] = {}
    ended: list[str] = []
    gone: list[Audit] = []


class Audits:
    """The documents of all audits as a function of a log prefix. ``kept`` and ``items`` bound the ended audits that
    stay in the state."""

    def __init__(self, kept: int = AUDITS_KEPT, items: int = ITEMS_KEPT) -> None:
        self._kept = kept
        self._items = items

    name = "audits"
    hears: frozenset[type[msgspec.Struct]] = frozenset((LogCreated, AuditRequested, *fold.HANDLERS))

    def initial(self) -> AuditsView:
        """No audit."""
        return AuditsView()

    def evolve(self, state: AuditsView, event: Event, sum: str) -> AuditsView:
        """The view after ``event``, whose line's sum is ``sum``."""
        data = event.data
        if isinstance(data, LogCreated):
            return AuditsView(data.log_id)
        known = state.audits.get(getattr(data, "audit_id", event.correlation))
        gone: list[Audit] = []
        if isinstance(data, AuditRequested):
            if known is not None and known.doing != "over":
                return state  # the auditor does not take it
            gone = [] if known is None else [known]
            after = fold.requested(event, data, sum)
        elif known is None or known.doing == "over":
            return state
        else:
            after = fold.evolved(known, event, sum)
        ended = [one for one in state.ended if one != after.audit_id]
        audits = state.audits
        if after.doing == "over":
            ended.append(after.audit_id)
        if after.concluded is not None:
            audits = _superseding(after, audits)
        return AuditsView(state.log_id, {**audits, after.audit_id: after}, ended, gone)

    def retire(self, state: AuditsView) -> AuditsView:
        """Without the oldest of the audits that have ended."""
        kept, items = 0, 0
        for name in reversed(state.ended):
            items += state.audits[name].items
            if kept and (kept >= self._kept or items > self._items):
                break
            kept += 1
        if kept == len(state.ended) and not state.gone:
            return state
        gone = set(state.ended[: len(state.ended) - kept])
        audits = {name: audit for name, audit in state.audits.items() if name not in gone}
        return AuditsView(state.log_id, audits, state.ended[len(state.ended) - kept :])

    def documents(self, state: AuditsView, since: AuditsView | None) -> dict[str, Part]:
        """Of audits that have changed, their documents."""
        found: dict[str, Part] = {}
        for audit in [*state.gone, *state.audits.values()]:
            before = since.audits.get(audit.audit_id) if since is not None else None
            if before is not audit:
                found |= _documents(audit, state.log_id)
        return found


def _superseding(audit: Audit, audits: dict[str, Audit]) -> dict[str, Audit]:
    """The audits, of which those that had their report where ``audit`` has its own now have none any more."""
    return {
        name: msgspec.structs.replace(one, superseded=True)
        if one.path == audit.path and one.concluded is not None and not one.superseded
        else one
        for name, one in audits.items()
    }


def _documents(audit: Audit, log_id: str) -> dict[str, Part]:
    found = {job_path(audit.audit_id): Part(job, (audit,), audit.audit_id)}
    if audit.concluded is not None and not audit.superseded:
        found[audit.path + MARKDOWN] = Part(_markdown, (audit, log_id), audit.audit_id)
        found[audit.path + DOCUMENT] = Part(_document, (audit, log_id), audit.audit_id)
    return found


def _markdown(audit: Audit, log_id: str) -> bytes:
    from projections.audits.rebuilt import provenance_of, report_of  # pydantic, when the first report is there
    from projections.audits.report import report_markdown

    return report_markdown(report_of(audit), provenance_of(audit, log_id)).encode()


def _document(audit: Audit, log_id: str) -> bytes:
    from projections.audits.rebuilt import provenance_of, report_of
    from projections.audits.report import report_json

    return report_json(report_of(audit), provenance_of(audit, log_id))
