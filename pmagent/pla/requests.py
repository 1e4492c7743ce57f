"""Requests for proposals as they may be recorded: the action read from the goal in plain, then masked
(docs/design.md §16.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pmagent.actors.pla.credentials.findings import findings, masked
from pmagent.actors.pla.credentials.goal_masking import masked_goal, masked_reason
from pmagent.actors.pla.goals import parse_goal
from pmagent.contracts.control import Channel
from pmagent.contracts.model import ModelLimits
from pmagent.contracts.pla import Action, TypeText, declared, digest, layout_of, objections
from pmagent.contracts.pla_events import GOAL_CHARS_MAX, FrameSource, PlaProposalRequested, Proof
from pmagent.events.errors import PmagentError
from pmagent.workspace.settings import FILE, PlaSettings

Redact = Callable[[str], str]
"""Text -> the text as a fact would hold it."""

DECLARED = "declared by the proposer"
"""The finding of a proposal that says itself that it holds credentials."""


class BadProposal(PmagentError, exit_code=2):
    """The request is for no proposal that can be made; nothing was recorded."""


class ProposalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's request. ``action``: stated by a document instead of by ``goal``; ``declared``: whoever made it
    says that it holds credentials; ``proof``: how it is known who asks; ``undeclared``: whether what is linked types
    what names no layout."""

    goal: str
    operator: str
    channel: Channel
    why: str = ""
    model: str = ""
    frame: FrameSource | None = None
    action: Action | None = None
    declared: bool = False
    proof: Proof = "none"
    undeclared: bool = True


class Made(msgspec.Struct, frozen=True):
    """The request, and the plain action, if the request does not hold it in plain."""

    asked: PlaProposalRequested
    secret: Action | None


def made(wish: ProposalRequest, settings: PlaSettings, redact: Redact) -> Made:
    """The request for ``wish``, with every secret masked; its digest is that of the plain action.

    Raises BadProposal, GoalError.
    """
    if len(wish.goal) > GOAL_CHARS_MAX:
        raise BadProposal(f"the goal is longer than {GOAL_CHARS_MAX} characters", "1024 characters can be typed")
    action = wish.action if wish.action is not None or wish.model else parse_goal(wish.goal)
    fields: dict[str, Any] = {
        "goal": masked_goal(wish.goal, redact), "requested_by": wish.operator, "channel": wish.channel,
        "rationale": masked(wish.why, redact), "policy": settings.credentials, "frame": wish.frame, "model": wish.model,
        "limits": msgspec.convert(settings, ModelLimits, from_attributes=True),
        "lifetime_s": settings.proposal_seconds, "two_persons": settings.two_persons,
        "layout": settings.layout, "machine": settings.name, "proof": wish.proof, "undeclared": wish.undeclared,
    }  # fmt: skip
    if action is None:
        return Made(_request(fields), None)
    if layout_of(action) not in (None, "", settings.layout):
        what = f"the document is for the layout {layout_of(action)}, and {settings.layout or 'none'} is declared"
        raise BadProposal(what, f"layout under [pla] in {FILE} declares the machine's")
    action = declared(action, settings.layout)
    logged = _masked(action, redact)
    found = _findings(action, redact) or ([DECLARED] if wish.declared else [])
    against = objections(action)
    fields |= {
        "action": logged, "masked": logged != action, "digest": digest(action), "chars": _chars(action),
        "findings": found, "objection": against[0].text if against else "",
        "objection_kind": against[0].kind if against else "",
    }  # fmt: skip
    if isinstance(action, TypeText) and isinstance(logged, TypeText) and logged != action:
        for name, text in (("goal", fields["goal"]), ("rationale", wish.why)):
            fields[name] = masked_reason(text, action.text, logged.text, redact)
    return Made(_request(fields), action if logged != action else None)


def _request(fields: dict[str, Any]) -> PlaProposalRequested:
    try:
        asked = PlaProposalRequested(**fields)
        return msgspec.convert(msgspec.to_builtins(asked), PlaProposalRequested)
    except msgspec.ValidationError as error:  # a mask may be longer than the secret in whose place it stands
        raise BadProposal(f"this is no proposal that can be asked for: {error}", "use fewer words") from error


def _masked(action: Action, redact: Redact) -> Action:
    """The action as the log may hold it; twice, because the intake looks at it once more."""
    if not isinstance(action, TypeText):
        return action
    text = redact(masked(action.text, redact))
    return action if text == action.text else msgspec.structs.replace(action, text=text)


def _findings(action: Action, redact: Redact) -> list[str]:
    """The credentials in an action, by name."""
    if not isinstance(action, TypeText):
        return []
    return findings(action.text, redact)


def _chars(action: Action) -> int:
    return len(action.text) if isinstance(action, TypeText) else 0
