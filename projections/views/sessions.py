"""A session as its documents show it: folded from its events, immutable, and small for the snapshot cache."""

from __future__ import annotations

import msgspec

from pmagent.contracts.jobs import JobState
from pmagent.contracts.pla import PlaMode
from pmagent.projections.sessions.chain import Chain


class Carried(msgspec.Struct, frozen=True):
    """The execution that was asked for last, and who approved it. ``settled``: how it ended has been told."""

    execution_id: str
    proposal_id: str
    operator_id: str
    settled: bool = False


class Tally(msgspec.Struct, frozen=True):
    """How much of what there was in a session. ``errors``: entries of that type, violations among them."""

    proposals: int = 0
    approved: int = 0
    rejected: int = 0
    executed: int = 0
    aborted: int = 0
    not_executed: int = 0
    unknown: int = 0
    errors: int = 0


class Session(msgspec.Struct, frozen=True):
    """A session, or (``outside``) what there was between two. ``mode`` is the one that stands; ``reason`` says why the
    session has ended; times are log times."""

    session_id: str
    updated: str
    mode: PlaMode = "OBSERVE"
    state: JobState = "queued"
    reason: str = ""
    outside: bool = False
    log: Chain = Chain()
    violations: Chain = Chain()
    tally: Tally = Tally()
    carried: Carried | None = None

    @property
    def over(self) -> bool:
        """Whether nothing is added to it any more."""
        return self.state in ("complete", "failed")
