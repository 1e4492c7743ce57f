"""The PLA's alerts, and the request for a decision; pure (docs/design.md §16.9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pmagent.actors.core.alerts import Alert, Asked, Judged, Judges, Over
from pmagent.actors.pla.switch import said
from pmagent.contracts.control import Severity
from pmagent.events.event import Event

REQUEST: Final = "typing_requested"
UNKNOWN: Final = "outcome_unknown"
_WISHED: Final = ("requested", "ended")
"""Codes of a mode that fell because somebody wanted that."""


def _page(proposal_id: str) -> str:
    return f"/approvals/{proposal_id}" if proposal_id else ""


def _asked(_: Event) -> Iterator[Judged]:
    yield Asked()


def _document(event: Event) -> Iterator[Judged]:
    """A document that an operator handed in; of the device nobody asks for one."""
    if event.data.by == "border":
        yield Asked()


def _proposed(event: Event) -> Iterator[Judged]:
    data = event.data
    yield Alert(
        kind=REQUEST, severity="request", title="Typing waits for a decision", subject=data.proposal_id,
        detail=f"{data.requested_by}: {data.rationale}", page=_page(data.proposal_id),
    )  # fmt: skip


def _approved(event: Event) -> Iterator[Judged]:
    yield Over(REQUEST, event.data.proposal_id)


def _closed(event: Event) -> Iterator[Judged]:
    data = event.data
    yield Over(REQUEST, data.proposal_id)
    if data.outcome == "unknown":
        yield _unknown_outcome(data.proposal_id, data.why)


def _outcome_unknown(event: Event) -> Iterator[Judged]:
    yield _unknown_outcome(event.data.proposal_id, event.data.why)


def _unknown_outcome(proposal_id: str, why: str) -> Alert:
    return Alert(
        kind=UNKNOWN, severity="urgent", title="Nobody knows how much was typed: look at the screen",
        subject=proposal_id, detail=said(why), page=_page(proposal_id),
    )  # fmt: skip


def _executed(event: Event) -> Iterator[Judged]:
    data = event.data
    if data.outcome != "done":
        title = "Typing was aborted" if data.outcome == "aborted" else "An approved action was not typed"
        yield Alert(
            kind="not_typed", severity="warn", title=title, subject=data.proposal_id, detail=said(data.why),
            page=_page(data.proposal_id),
        )  # fmt: skip


def _mode_changed(event: Event) -> Iterator[Judged]:
    data = event.data
    if data.code not in _WISHED:
        title, why = f"The mode fell to {data.mode}", said(f"{data.who}: {data.why}")
        yield Alert(kind="mode_fell", severity="warn", title=title, detail=why, page="/#pla")


def _violation(event: Event) -> Iterator[Judged]:
    data = event.data
    severity: Severity = "bad" if data.severity == "error" else "warn"
    yield Alert(
        kind="contract_violated", severity=severity, title="A contract was violated",
        subject=f"{data.kind} {data.contract}", detail=f"{data.contract}: {data.text}", page=_page(data.proposal_id),
    )  # fmt: skip


ALERTS: Final[Judges] = {
    "hid.outcome_unknown": _outcome_unknown,
    "pla.approved": _approved,
    "pla.arm_requested": _asked,
    "pla.contract_broken": _document,
    "pla.decision_requested": _asked,
    "pla.executed": _executed,
    "pla.mode_changed": _mode_changed,
    "pla.proposal_closed": _closed,
    "pla.proposal_requested": _asked,
    "pla.proposed": _proposed,
    "pla.violation": _violation,
}
