"""A decision as a form of the page sends it, and what it has to bring; pure (docs/design.md §18.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from pmagent.clean import is_seen
from pmagent.console.pages.approvals.shown_state import BadDecision, ShownState, unpacked
from pmagent.contracts.pla import MODES
from pmagent.contracts.pla_events import LOOKED_MS_MAX
from pmagent.pla.risk import Tier

Verdict = Literal["APPROVED", "REJECTED"]

FIRST_CHARS: Final = 6
"""So many characters of the digest are typed to approve what is of high risk."""
REASON_CHARS_MAX: Final = 500
YES: Final = "yes"

NONCE: Final = re.compile(r"[0-9a-f]{32}")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_HINT: Final = "look at the proposal again, and decide there"


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A form, understood: what was shown (``seen``, ``digest``, ``mode``), and what the operator says to it. ``first``:
    the digest's beginning as typed; ``revealed``: what is masked was shown in plain."""

    verdict: Verdict
    nonce: str
    digest: str
    mode: str
    seen: ShownState
    reason: str = ""
    read: bool = False
    first: str = ""
    acknowledged: bool = False
    revealed: bool = False


def sent(form: Mapping[str, str], verdict: Verdict) -> Sent:
    """The form, as one of this page's. Raises BadDecision: it is none."""
    nonce, digest, mode = form.get("nonce", ""), form.get("digest", ""), form.get("mode", "")
    if not NONCE.fullmatch(nonce) or not _DIGEST.fullmatch(digest) or mode not in MODES:
        raise BadDecision("the decision does not say what it is about", _HINT)
    shown = unpacked(form.get("seen", ""))
    if shown.digest != digest or shown.mode != mode:
        raise BadDecision("the decision says two things of what was shown", _HINT)
    return Sent(
        verdict=verdict, nonce=nonce, digest=digest, mode=mode, seen=shown, reason=form.get("reason", "").strip(),
        read=form.get("read") == YES, first=form.get("first", "").strip().lower(),
        acknowledged=form.get("acknowledged") == YES, revealed=form.get("revealed") == YES,
    )  # fmt: skip


def wanting(one: Sent, document: Mapping[str, Any], tier: Tier) -> dict[str, str]:
    """The form's gaps, by field; nothing when it may be handed on. The daemon judges all but the second step."""
    lacks: dict[str, str] = {}
    if one.verdict == "REJECTED":
        if not is_seen(one.reason):
            lacks["reason"] = "Say why; it stands in the log."
        elif len(one.reason) > REASON_CHARS_MAX:
            lacks["reason"] = f"That is {len(one.reason)} characters; at most {REASON_CHARS_MAX} are kept."
        return lacks
    if not one.read:
        lacks["read"] = "Confirm that you have read exactly what is approved."
    if tier == "high" and one.first != one.digest[:FIRST_CHARS]:
        lacks["first"] = f"Type the first {FIRST_CHARS} characters of the digest as it is shown."
    if document["masked"] and not one.revealed:
        lacks["revealed"] = "What would be typed is masked: reveal it, and decide on what you see."
    if document["credential_warning"] and not one.acknowledged:
        lacks["acknowledged"] = "Confirm that you know that it holds what looks like credentials."
    return lacks


def request_id(one: Sent, operator: str, proposal_id: str) -> str:
    """The request's id: of the form's nonce, and of who decides what about what, so that sending a form twice is asking
    once, while no other decision hides behind its nonce."""
    about = f"{operator}|{proposal_id}|{one.verdict}|{one.digest}|{one.mode}"
    return f"pla.decide-{one.nonce}-{sha256(about.encode()).hexdigest()[:16]}"


def arguments(one: Sent, proposal_id: str, looked_ms: int) -> dict[str, Any]:
    """The arguments of ``pla.decide``, but for who decides."""
    return {
        "proposal_id": proposal_id, "decision": one.verdict, "digest": one.digest, "reason": one.reason,
        "acknowledged": one.acknowledged, "seen_mode": one.mode, "looked_ms": min(max(0, looked_ms), LOOKED_MS_MAX),
    }  # fmt: skip
