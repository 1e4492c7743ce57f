"""Requests to the orchestrator assistant (OA) and its decisions: snapshots, sessions, permits, escalations
(docs/design.md §12)."""

from __future__ import annotations

from typing import Final

import msgspec

from pmagent.contracts.kernel import Mode, Reason
from pmagent.contracts.payload import Payload, event_type

GRANTOR: Final = "oa"
"""The actor that grants permits."""

PERMIT_SECONDS = 600.0
"""How long a permit lasts when the request does not say (seconds)."""


@event_type("oa.snapshot_requested", request=True)
class OaSnapshotRequested(Payload, frozen=True, kw_only=True):
    """Read the surfaces now and bring STATE.json up to them (``pmagent oa snapshot``)."""


@event_type("oa.snapshot_taken")
class OaSnapshotTaken(Payload, frozen=True, kw_only=True):
    """Answer to a snapshot request at position ``request``, decided on the kernel.observed at ``observed``.

    ``success`` is false when a required surface is missing or invalid; ``reasons`` name each, and STATE.json is
    left as it was.
    """

    request: int
    observed: int
    success: bool
    mode: Mode
    reasons: list[Reason]


@event_type("oa.boot_requested", request=True)
class OaBootRequested(Payload, frozen=True, kw_only=True):
    """Boot an OA session (``pmagent boot oa``). ``session_id`` is ``oa-session-<uuid>``, made where the request was
    made; ``workspace`` is its absolute path."""

    session_id: str
    workspace: str


class Interpretation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rights of a mode. ``recommended_commands`` name what would mend each reason."""

    allowed_actions: list[str]
    forbidden_actions: list[str]
    recommended_commands: list[str]


@event_type("oa.session_booted")
class OaSessionBooted(Payload, frozen=True, kw_only=True):
    """A session stands. ``mode`` is the mode at boot; DEGRADED boots with a warning (``reasons``)."""

    request: int
    session_id: str
    workspace: str
    mode: Mode
    phase: str
    branch: str
    interpretation: Interpretation
    reasons: list[Reason]


@event_type("oa.boot_refused")
class OaBootRefused(Payload, frozen=True, kw_only=True):
    """The kernel is BLOCKED, so no session boots (fail closed)."""

    request: int
    session_id: str
    mode: Mode
    reasons: list[Reason]


@event_type("oa.session_ended")
class OaSessionEnded(Payload, frozen=True, kw_only=True):
    """A session is over, because its number of open sessions reached the limit (oldest first) or it was closed."""

    session_id: str
    reason: str


@event_type("oa.escalated")
class OaEscalated(Payload, frozen=True, kw_only=True):
    """Something a person must know. ``kind``: mode_drift, mode_degraded, mode_blocked or guard_failure; for
    mode_drift ``session_id``, ``boot_mode`` and ``current_mode`` say whose and what. ``severity``: warn or block."""

    kind: str
    severity: str
    session_id: str = ""
    boot_mode: str = ""
    current_mode: str = ""
    reasons: list[Reason] = []


@event_type("oa.permit_requested", request=True)
class OaPermitRequested(Payload, frozen=True, kw_only=True):
    """Somebody wants to do something outward: ``action`` is an action class, ``subject`` what it acts on, ``holder``
    the actor that will use the permit, ``uses`` how often, ``seconds`` for how long."""

    action: str
    subject: str
    holder: str
    uses: int = 1
    seconds: float = PERMIT_SECONDS


@event_type("oa.permit_granted")
class OaPermitGranted(Payload, frozen=True, kw_only=True):
    """The permit; its position is its name. The engine's gate, not the holder, checks it at each use."""

    request: int
    action: str
    subject: str
    holder: str
    uses: int
    expires_at: str
    mode: Mode


@event_type("oa.permit_refused")
class OaPermitRefused(Payload, frozen=True, kw_only=True):
    """No permit: ``reasons`` say why (unknown action, forbidden in this mode, …), ``mend`` what would change it."""

    request: int
    action: str
    subject: str
    reasons: list[str]
    mend: list[str]


@event_type("oa.permit_revoked")
class OaPermitRevoked(Payload, frozen=True, kw_only=True):
    """The permit granted at position ``permit`` is worth nothing from here on, and what runs under it is stopped."""

    permit: int
    reason: str


@event_type("oa.permit_release_requested", request=True)
class OaPermitReleaseRequested(Payload, frozen=True, kw_only=True):
    """The holder gives back the permit granted at position ``permit`` before it expires."""

    permit: int
    holder: str


@event_type("oa.permit_released")
class OaPermitReleased(Payload, frozen=True, kw_only=True):
    """Answer to a release: the permit was live, and is revoked by the decision before this one."""

    request: int
    permit: int


@event_type("oa.permit_release_refused")
class OaPermitReleaseRefused(Payload, frozen=True, kw_only=True):
    """Answer to a release that changes nothing: ``reasons`` say why, ``mend`` what to do."""

    request: int
    permit: int
    reasons: list[str]
    mend: list[str]
