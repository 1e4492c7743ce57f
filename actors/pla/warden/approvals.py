"""Decisions of operators on proposals; pure (docs/design.md §16.4).

An approval is one operator's, for one proposal, for just the bytes that were shown, once, for a minute.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from pmagent.actors.pla.brain.objections import PROVE
from pmagent.actors.pla.ids import derived
from pmagent.actors.pla.warden.closing import closed
from pmagent.actors.pla.warden.state import ProposalView, WardenState
from pmagent.contracts.payload import Correlated, Payload
from pmagent.contracts.pla import APPROVAL_SECONDS, CREDENTIAL_SECONDS, DECLARE, UNDECLARED, layout_of
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaDecisionRefused,
    PlaDecisionRequested,
    PlaExecutionRequested,
    PlaProposed,
    PlaRejected,
)
from pmagent.events.event import Event, time_after

Objection = tuple[str, str, str]
"""Code, reason, and what would mend it."""


def on_decision(state: WardenState, event: Event, asked: PlaDecisionRequested) -> Iterator[Payload | Correlated]:
    """The decisions that follow from an operator's decision; always one answer."""
    view = state.proposals.get(asked.proposal_id)
    if view is None:
        yield _refused(state, event, asked, ("unknown", "there is no such proposal", "pmagent pla list"), "")
        return
    objection = _stands(view, event) or _differs(view, asked)
    if objection is None:
        objection = _rejecting(asked) if asked.decision == "REJECTED" else _approving(state, event, view, asked)
    if objection is not None:
        yield _refused(state, event, asked, objection, view.proposed.digest)
        if objection[0] == "expired" and view.stands == "open":
            yield from closed(view, "expired", "nobody decided in time")
    elif asked.decision == "REJECTED":
        yield PlaRejected(
            request=event.position, session_id=view.proposed.session_id, proposal_id=asked.proposal_id,
            digest=view.proposed.digest, operator_id=asked.operator_id, channel=asked.channel, reason=asked.reason,
        )  # fmt: skip
        yield from closed(view, "rejected", asked.reason)
    else:
        yield from _approved(state, event, view, asked)


def _approved(
    state: WardenState, event: Event, view: ProposalView, asked: PlaDecisionRequested
) -> Iterator[Payload | Correlated]:
    proposed = view.proposed
    executes = state.mode == "EXECUTE"
    yield PlaApproved(
        request=event.position, session_id=proposed.session_id, proposal_id=proposed.proposal_id,
        digest=proposed.digest, operator_id=asked.operator_id, channel=asked.channel,
        expires_at=time_after(event.time, APPROVAL_SECONDS), executes=executes,
        credential_acknowledged=asked.acknowledged,
    )  # fmt: skip
    if not executes:
        yield from closed(view, "recorded", f"approved in {state.mode}, which executes nothing")
        return
    requested = PlaExecutionRequested(
        session_id=proposed.session_id, proposal_id=proposed.proposal_id, execution_id=derived("exec", event),
        approval=event.position, digest=proposed.digest, action=proposed.action, masked=proposed.masked,
        operator_id=asked.operator_id, decided_at=event.time,
    )  # fmt: skip
    yield Correlated(requested, proposed.session_id)


def _stands(view: ProposalView, event: Event) -> Objection | None:
    """Why there is nothing to decide on any more."""
    if view.stands != "open" and view.outcome != "expired":
        once = "; an approval is used once" if view.approval else ""
        return "decided", f"the proposal is {view.outcome or 'decided on'} already{once}", "propose it again"
    if view.stands != "open" or event.time >= view.proposed.expires_at:
        return "expired", f"the proposal expired at {view.proposed.expires_at}", "propose it again"
    return None


def _differs(view: ProposalView, asked: PlaDecisionRequested) -> Objection | None:
    """The decision is about other bytes than the proposal's."""
    if asked.digest == view.proposed.digest:
        return None
    shown = asked.digest or "no digest"
    text = f"the decision is on {shown[:64]}, the proposal has the digest {view.proposed.digest}"
    return "digest", text, f"pmagent pla show {view.proposed.proposal_id}, and decide on what it shows"


def _rejecting(asked: PlaDecisionRequested) -> Objection | None:
    if asked.reason.strip(" \t\n"):
        return None
    return "reason", "a rejection needs a reason", "say why: --reason"


def _approving(state: WardenState, event: Event, view: ProposalView, asked: PlaDecisionRequested) -> Objection | None:
    proposed = view.proposed
    if asked.seen_mode not in ("", state.mode):
        what = f"the mode was {asked.seen_mode} when it was shown, and is {state.mode} now"
        return "changed", what, "look at it again: the mode decides whether it is typed at once"
    if (other := _declared_since(proposed, asked)) is not None:
        return other
    # The console knows who acts there; two of its operators are two persons, whatever the setting.
    if (proposed.two_persons or asked.channel == "console") and asked.operator_id == proposed.requested_by:
        return "self", f"{asked.operator_id} asked for it, and may not approve it", "another operator has to approve"
    if proposed.two_persons and asked.proof == "none":
        what = f"two_persons: nobody proved to be {asked.operator_id}"
        return "unproven", what, PROVE if asked.channel != "console" else "sign out, and sign in with your secret"
    if proposed.credential_warning:
        if proposed.policy != "acknowledge" or not asked.acknowledged:
            what = f"it holds what looks like credentials ({', '.join(proposed.findings)})"[:500]
            return "credential", what, "look closely, and approve with --acknowledge-credentials"
        earliest = time_after(view.proposed_at, CREDENTIAL_SECONDS)
        if event.time < earliest:
            return "wait", f"a proposal with credentials can be approved from {earliest} on", "read it again meanwhile"
    return _not_executable(state, layout_of(proposed.action)) if state.mode == "EXECUTE" else None


def _declared_since(proposed: PlaProposed, asked: PlaDecisionRequested) -> Objection | None:
    """Another machine is declared than the one that it was proposed for, or two persons are demanded only now."""
    if asked.two_persons and not proposed.two_persons:
        return "changed", "two_persons was off when it was proposed: nobody proved who asked", "propose it again"
    layout, machine = layout_of(proposed.action), "" if proposed.machine is UNSET else proposed.machine
    for what, before, now in (("layout", layout, asked.layout), ("name", machine, asked.machine)):
        if before is not None and now is not None and before != now:
            text = f"the machine's {what} was {before or 'not declared'} when it was proposed; now: {now or 'none'}"
            return "changed", text, "propose it again"
    return None


def _not_executable(state: WardenState, layout: str | None) -> Objection | None:
    """Why nothing could be executed now: then nothing is approved either, for it would wait to be typed. ``layout``: of
    what is to be typed."""
    device = state.device
    if device is None or not device.compatible:
        return "device", "no device is linked that could type it", "pmagent pla device shows what there is"
    if layout == "" and not device.undeclared:
        return "device", UNDECLARED, DECLARE
    if device.kill_switch_state != "ARMED":
        return "killed", f"the kill switch is {device.kill_switch_state}", "close it, and cut the device's power once"
    if not state.armed:
        return "not_armed", "the device is not armed", "pmagent pla arm, and approve again"
    if state.executing is not None:
        return "busy", "another execution is not over", "approve when it is"
    return None


def _refused(
    state: WardenState, event: Event, asked: PlaDecisionRequested, objection: Objection, digest: str
) -> PlaDecisionRefused:
    code, reason, mend = objection
    return PlaDecisionRefused(
        request=event.position, session_id=state.session_id, proposal_id=asked.proposal_id[:64], code=code,
        digest=digest, reasons=[reason], mend=[mend],
    )  # fmt: skip
