"""How proposals and sessions end; pure (docs/design.md §16.4)."""

from __future__ import annotations

from collections.abc import Iterator

from pmagent.actors.pla.warden.state import ProposalView, WardenState
from pmagent.contracts.effect import EffectCancelRequested
from pmagent.contracts.payload import Correlated
from pmagent.contracts.pla_events import PlaProposalClosed, PlaSessionEnded


def closed(view: ProposalView, outcome: str, why: str, *, fired: bool = False) -> Iterator[Correlated]:
    """The last word on a proposal; its timer ends with it, unless that has ``fired``."""
    proposed = view.proposed
    yield Correlated(
        PlaProposalClosed(
            session_id=proposed.session_id, proposal_id=proposed.proposal_id, digest=proposed.digest,
            outcome=outcome, why=why,
        ),
        proposed.session_id,
    )  # fmt: skip
    if view.timer and not fired:
        yield Correlated(EffectCancelRequested(request=view.timer), proposed.session_id)


def ended_when_idle(state: WardenState) -> Iterator[Correlated]:
    """The end of a session that only waited for what was being typed."""
    if state.ending:
        yield session_end(state, state.ending, failed=state.ending_failed)


def session_end(state: WardenState, why: str, *, failed: bool) -> Correlated:
    """The session is over."""
    ended = PlaSessionEnded(session_id=state.session_id, state="failed" if failed else "complete", reason=why)
    return Correlated(ended, state.session_id)
