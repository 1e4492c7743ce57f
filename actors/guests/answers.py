"""Whether an operator's answer counts, or a policy's new text: nobody approves for themselves, twice, or what they have
not seen; pure."""

from __future__ import annotations

from typing import Final, Literal

from pmagent.actors.guests.state import RULES_MAX, Approval, GuestsState
from pmagent.contracts.guests import (
    GuestAnswerRefused,
    GuestAnswerRequested,
    GuestPolicyEditAccepted,
    GuestPolicyEditRefused,
    GuestPolicyEditRequested,
)
from pmagent.events.event import Event, time_after

GIVEN_SECONDS: Final = 600.0
"""An approval may be used for so long once it is given."""
RULE_SECONDS: Final = 7 * 24 * 3600.0
"""A session's rule may hold for so long at most."""

Code = Literal["unknown", "over", "digest", "self", "twice", "unproven", "rule"]


def refused(state: GuestsState, event: Event, wish: GuestAnswerRequested) -> GuestAnswerRefused | None:
    """Why the answer counts for nothing; None: it counts."""
    found = _refusal(state, event, wish)
    if found is None:
        return None
    code, reason, mend = found
    return GuestAnswerRefused(request=event.position, approval=wish.approval, code=code, reasons=[reason], mend=[mend])


def _refusal(state: GuestsState, event: Event, wish: GuestAnswerRequested) -> tuple[Code, str, str] | None:
    approval, shown = state.approvals.get(wish.approval), f"pmagent approvals show {wish.approval}"
    if approval is None:
        what = "nothing waits under this number: it was answered, used, or has expired, or there was none"
        return "unknown", what, "pmagent approvals lists what waits"
    if approval.expires <= event.time:
        return "over", f"it expired at {approval.expires}", "the agent has to ask again"
    if wish.digest != approval.digest:
        return "digest", "another call waits under this number than was shown", shown
    if wish.asking:
        return "self", f"the answer comes from the processes of session {wish.asking}", "answer in a shell of your own"
    if wish.decision == "reject":
        return None
    if approval.given:
        return "over", "it is approved already, and was not used yet", "nothing is left to do"
    if wish.operator_id in approval.operators:
        return "twice", f"{wish.operator_id} has approved it already", f"{approval.needed} different operators have to"
    if approval.needed > 1 and wish.proof not in ("secret", "console"):
        what = "several operators have to approve it, and nobody knows who this is"
        return "unproven", what, "--secret-stdin, or the console"
    return _rule_refusal(state, event, wish, approval) if wish.rule is not None else None


def _rule_refusal(
    state: GuestsState, event: Event, wish: GuestAnswerRequested, approval: Approval
) -> tuple[Code, str, str] | None:
    rule, session = wish.rule, state.sessions.get(approval.session)
    assert rule is not None, "looked at by who asks"
    if approval.needed > 1:
        return "rule", "a call that several operators have to approve makes no rule", "approve this call alone"
    if rule.answer != "allow" or rule.label is not None or rule.remediation:
        return "rule", "a session's rule allows calls, and says nothing else", "leave the rest out"
    if not event.time < rule.expires <= time_after(event.time, RULE_SECONDS):
        return "rule", "a session's rule expires, within 7 days", "say when, e.g. in an hour"
    if session is None or len(session.rules) >= RULES_MAX:
        what = f"its session has ended, or has {RULES_MAX} rules already"
        return "rule", what, "put the rule into .pmagent/policy.yaml"
    return None


def edited(event: Event, wish: GuestPolicyEditRequested) -> GuestPolicyEditAccepted | GuestPolicyEditRefused:
    """Whether a text becomes a layer's file: no session's process asks, and the file is the one that was shown."""
    refusal: tuple[Literal["self", "changed", "same"], str, str] | None = None
    if wish.asking:
        what = f"the request comes from the processes of session {wish.asking}"
        refusal = "self", what, "accept it in a shell of your own, or on the console"
    elif wish.sha256 == wish.found:
        refusal = "same", "the file has this text already", "nothing is left to do"
    elif wish.before != wish.found:
        refusal = "changed", "the file is not the one that was shown: somebody has changed it", "look at it again"
    if refusal is not None:
        code, reason, mend = refusal
        return GuestPolicyEditRefused(
            request=event.position, layer=wish.layer, code=code, reasons=[reason], mend=[mend]
        )  # fmt: skip
    return GuestPolicyEditAccepted(
        request=event.position, layer=wish.layer, before=wish.before, sha256=wish.sha256, operator_id=wish.operator_id,
        channel=wish.channel,
    )  # fmt: skip
