"""The brain's answers, and what is taken back with them; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from pmagent.actors.pla.brain.objections import Refusal, found_in
from pmagent.actors.pla.brain.state import BrainState, Look, Pending
from pmagent.actors.pla.ids import derived
from pmagent.actors.pla.violations import violation
from pmagent.actors.pla.warden.actor import BRAIN
from pmagent.contracts.effect import (
    EffectCancelled,
    EffectCancelRequested,
    EffectEnd,
    EffectFailed,
    EffectRefused,
    EffectTimedOut,
)
from pmagent.contracts.model import ModelFailed, ModelWithdrawn
from pmagent.contracts.payload import Correlated, Payload
from pmagent.contracts.pla import RATIONALE_CHARS_MAX, RATIONALE_CHARS_MIN, Action, TypeText, Unfit, digest
from pmagent.contracts.pla_events import PlaFrameFailed, PlaFrameObserved, PlaObserved, PlaProposalRefused, PlaProposed
from pmagent.events.event import Event, time_after

Decision = Payload | Correlated

CONTRACT: Final = "action_proposal"
HALTED: Final = "pmagent log tail --type actor.halted shows where; start a version that does not fail"
SHOWN_CHARS_MAX: Final = 1_000
"""So much of a screen's text stands in a proposal."""
TOLD_CHARS_MAX: Final = 1_000

_MODEL_MEND: Final = "pmagent log tail --type model.failed shows why; a goal may state its action: type: TEXT, keys: …"


def proposed(
    pending: Pending, event: Event, action: Action | None = None, rationale: str = "", found: list[str] | None = None
) -> Correlated:
    """The proposal: what the goal states or, with ``action`` and ``rationale``, what the model made of it."""
    asked = pending.asked
    by = asked.model if action is not None else "rules"
    plain = action if action is not None else asked.action
    assert plain is not None, "a request without an action is answered by a model"
    masked = asked.masked and action is None
    found = found_in(asked) if found is None else found
    chars = asked.chars if masked else len(plain.text) if isinstance(plain, TypeText) else 0
    made = PlaProposed(
        request=pending.request, session_id=pending.session_id, proposal_id=derived("prop", event),
        mode=pending.mode, action=plain, masked=masked, digest=asked.digest if masked else digest(plain), chars=chars,
        rationale=rationale or _rationale(pending), credential_warning=bool(found), findings=found,
        policy=asked.policy, requested_by=asked.requested_by, proposed_by=by, channel=asked.channel,
        expires_at=time_after(event.time, asked.lifetime_s), frame=pending.frame,
        ocr_text="" if pending.seen is None else pending.seen.ocr_text[:SHOWN_CHARS_MAX], two_persons=asked.two_persons,
        machine=asked.machine or UNSET,
    )  # fmt: skip
    return in_pending(pending, made)


def _rationale(pending: Pending) -> str:
    """Why: as the operator says, else that it was asked for."""
    given = pending.asked.rationale.strip(" \t\r\n")
    if len(given) >= RATIONALE_CHARS_MIN:
        return given[:RATIONALE_CHARS_MAX]
    return f"{pending.asked.requested_by} asked for just this action" + (f": {given}" if given else "")


def refused(pending: Pending, code: str, reason: str, mend: str) -> Correlated:
    """The request that was under way ends without a proposal."""
    return in_pending(pending, _refusal(pending.request, pending.session_id, code, reason, mend))


def unfit(pending: Pending, code: str, reason: str, mend: str, kind: Unfit) -> Iterator[Decision]:
    """The same, because what a model replied violates the contract."""
    yield _violated(pending.session_id, kind, reason)
    yield refused(pending, code, reason, mend)


def refused_at_once(state: BrainState, event: Event, why: Refusal) -> Iterator[Decision]:
    """A request that was not taken up."""
    if why.violation is not None:
        yield _violated(state.session_id, why.violation, why.reason)
    yield _refusal(event.position, state.session_id, why.code, why.reason, why.mend)


def _violated(session_id: str, kind: Unfit, text: str) -> Correlated:
    return Correlated(violation(kind, CONTRACT, text, BRAIN, session_id=session_id), session_id)


def _refusal(request: int, session_id: str, code: str, reason: str, mend: str) -> PlaProposalRefused:
    return PlaProposalRefused(
        request=request, session_id=session_id, code=code, reasons=[reason[:TOLD_CHARS_MAX]],
        mend=[mend[:TOLD_CHARS_MAX]] if mend else [],
    )  # fmt: skip


def ended(pending: Pending, code: str, reason: str, mend: str) -> Iterator[Decision]:
    """The request ends before what it waits for is there; that is taken back."""
    if pending.waits:
        back = ModelWithdrawn(ask=pending.waits) if pending.model else EffectCancelRequested(request=pending.waits)
        yield in_pending(pending, back)
    yield refused(pending, code, reason, mend)


def given_up(state: BrainState) -> Iterator[Decision]:
    """After a halt, during which nothing was decided: all that is open is answered."""
    why = "the brain was halted, and what happened meanwhile was not decided on"
    if state.pending is not None:
        yield from ended(state.pending, "mode", why, "ask again")
    for look in state.looks.values():
        if look.waits:
            yield Correlated(EffectCancelRequested(request=look.waits), look.correlation)
        yield _unseen(state, look, why, "ask again")


def looked(state: BrainState, look: Look, event: Event) -> Correlated:
    """The answer to who only looks: the frame, or why there is none."""
    match event.data:
        case PlaFrameObserved():
            seen = PlaObserved(request=look.request, session_id=state.session_id, frame=event.position)
            return Correlated(seen, look.correlation)
        case PlaFrameFailed(text=text, mend=mend):
            return _unseen(state, look, text, mend)
    return _unseen(state, look, *frame_failure(event.data))


def _unseen(state: BrainState, look: Look, reason: str, mend: str) -> Correlated:
    answer = PlaObserved(
        request=look.request, session_id=state.session_id, frame=0, reasons=[reason[:TOLD_CHARS_MAX]],
        mend=[mend[:TOLD_CHARS_MAX]] if mend else [],
    )  # fmt: skip
    return Correlated(answer, look.correlation)


def frame_failure(end: EffectEnd) -> tuple[str, str]:
    """Why there is no frame, and what would mend it."""
    match end:
        case EffectTimedOut(limit_s=limit):
            return f"taking the frame took longer than {limit:g} s", "look whether the folder or the camera answers"
        case EffectFailed(error=error, place=place):
            return f"taking the frame failed ({error} in {place})", "this is an error of pmagent's; please report it"
        case EffectRefused(reasons=reasons, mend=mend):
            return "; ".join(reasons), "; ".join(mend)
        case EffectCancelled(reason=reason):
            return f"taking the frame was stopped ({reason})", "ask again"
    return "taking the frame was interrupted", "ask again"


def model_failure(failed: ModelFailed) -> tuple[str, str]:
    """Why there is no reply, and what would mend it."""
    return f"the model gives no answer: {failed.text}", _MODEL_MEND


def in_pending(pending: Pending, payload: Payload) -> Correlated:
    """A decision that belongs to the request under way, whatever led to it."""
    return Correlated(payload, pending.correlation)
