"""Objections to a request for a proposal, before anything is done for it; pure (docs/design.md §16.4)."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from pmagent.actors.pla.brain.state import BrainState
from pmagent.actors.pla.credentials.findings import findings
from pmagent.contracts.payload import END
from pmagent.contracts.pla import (
    COORDINATE_MAX,
    COORDINATE_MIN,
    DECLARE,
    KEYS_MAX,
    TEXT_CHARS_MAX,
    UNDECLARED,
    Action,
    KeyCombo,
    MouseClick,
    MouseMove,
    TypeText,
    Unfit,
    digest,
    layout_of,
    objections,
)
from pmagent.contracts.pla_events import PlaProposalRequested
from pmagent.events.secret_forms import MASK

FINDINGS_MAX: Final = 16
FINDING_CHARS_MAX: Final = 100

_DIGEST: Final = re.compile("[0-9a-f]{64}" + END)
_KINDS: Final[dict[str, Unfit]] = {
    "schema_validation": "schema_validation", "missing_field": "missing_field", "bound_exceeded": "bound_exceeded",
}  # fmt: skip

_MENDS: Final[dict[type[Action], str]] = {
    TypeText: f"a US keyboard types printable ASCII, tab and newline; up to {TEXT_CHARS_MAX} characters",
    KeyCombo: f"up to {KEYS_MAX} keys, not only modifiers; pmagent pla propose --help names them",
    MouseMove: f"X and Y are each {COORDINATE_MIN} to {COORDINATE_MAX}; a longer way takes several",
    MouseClick: "click: left, right or middle",
}  # fmt: skip

ACKNOWLEDGE: Final = (
    'type it yourself, or set credentials = "acknowledge" under [pla] in .pmagent/config.toml, and acknowledge it'
)


PROVE: Final = "give the operator's secret: on a terminal it is asked for, elsewhere --secret-stdin reads it"


class Refusal(msgspec.Struct, frozen=True):
    """Why nothing is proposed: the code of ``pla.proposal_refused``, in words, what would mend it, and, where the
    request violates a contract, the row of the specification's table."""

    code: str
    reason: str
    mend: str
    violation: Unfit | None = None


def refusal(state: BrainState, asked: PlaProposalRequested) -> Refusal | None:
    """Why the request is not taken up; None: it is."""
    return standing(state) or _person_refusal(asked) or _action_refusal(asked)


def _person_refusal(asked: PlaProposalRequested) -> Refusal | None:
    """Two persons are two only where each has proved who they are; a log of an earlier release does not say."""
    if not asked.two_persons or asked.proof != "none":
        return None
    return Refusal("unproven", f"two_persons: nobody proved to be {asked.requested_by}", PROVE)


def standing(state: BrainState) -> Refusal | None:
    """Why nothing may be proposed now, whatever it is."""
    if state.halted:
        return Refusal("mode", "the warden is halted", "pmagent log tail --type actor.halted shows where")
    if state.mode == "OBSERVE" or not state.session_id:
        return Refusal("mode", "proposing needs SUGGEST or EXECUTE, the mode is OBSERVE", "pmagent pla mode SUGGEST")
    if state.proposal_id:
        what = f"{state.proposal_id} is open, and there is one open proposal at a time"
        return Refusal("open", what, f"pmagent pla show {state.proposal_id}, then approve or reject it")
    if state.pending is not None:
        return Refusal("open", "another request for a proposal is under way", "pmagent pla status shows it; ask again")
    return None


def found_in(asked: PlaProposalRequested) -> list[str]:
    """The credentials in the action that is asked for. Where it is masked the request says so; what is in plain is
    looked at here once more."""
    given = [name[:FINDING_CHARS_MAX] for name in asked.findings]
    if isinstance(asked.action, TypeText) and not asked.masked:
        given += findings(asked.action.text)
    named = list(dict.fromkeys(given))[:FINDINGS_MAX]
    return named or (["masked"] if asked.masked else [])


def _action_refusal(asked: PlaProposalRequested) -> Refusal | None:
    action = asked.action
    if action is None:
        if asked.objection or not asked.model:
            reason = asked.objection or "the goal states no action, and no model is named to make one of it"
            mend = "type: TEXT, keys: ctrl+c, move: 10 -5 or click: left; or --model NAME"
            return Refusal("goal", reason, mend, _KINDS.get(asked.objection_kind))
        return None
    return undeclared(asked, action) or _unfit(asked, action) or _credential(asked, action)


def undeclared(asked: PlaProposalRequested, action: Action) -> Refusal | None:
    """No layout is declared, and the linked device types nothing without one."""
    refused = layout_of(action) == "" and not asked.undeclared
    return Refusal("device", UNDECLARED, DECLARE) if refused else None


def _unfit(asked: PlaProposalRequested, action: Action) -> Refusal | None:
    if asked.objection:
        return _bad(action, asked.objection, _KINDS.get(asked.objection_kind, "schema_validation"))
    if not asked.masked:
        for objection in objections(action):
            return _bad(action, objection.text, objection.kind)
        return None
    if not isinstance(action, TypeText) or not _DIGEST.match(asked.digest):
        return _bad(action, "the request does not name the digest of what is masked in it", "missing_field")
    if not 0 < asked.chars <= TEXT_CHARS_MAX:
        return _bad(action, f"the text has {asked.chars} characters, not 1 to {TEXT_CHARS_MAX}", "bound_exceeded")
    return None


def _credential(asked: PlaProposalRequested, action: Action) -> Refusal | None:
    """The plain action has to be the one that was meant: a mask, or bytes of another digest, would be typed
    otherwise."""
    if not asked.masked:
        holds_mask = isinstance(action, TypeText) and MASK in action.text
        if holds_mask or (asked.digest and asked.digest != digest(action)):
            reason = "something in it was masked on the way here, and what was meant is not known any more"
            return Refusal("credential", reason, "ask through pmagent pla propose")
    found = found_in(asked)
    if found and asked.policy == "refuse":
        reason = f"it looks as if it held credentials ({', '.join(found)}), and those are not typed here"
        return Refusal("credential", reason, ACKNOWLEDGE)
    return None


def _bad(action: Action, text: str, kind: Unfit) -> Refusal:
    mend = _MENDS[type(action)]
    if isinstance(action, TypeText) and action.layout:
        mend = f"the layout {action.layout} is declared; up to {TEXT_CHARS_MAX} characters that it types"
    return Refusal("unfit", text, mend, kind)
