"""The PLA's events: sessions, modes, frames, proposals, decisions of operators, and what became of them
(docs/design.md §16).

Causes and effects:

``pla.proposal_requested``
    -> (``pla.frame_requested`` -> ``pla.frame_observed``)? -> (``model.asked`` -> ``model.replied``)?
    -> ``pla.proposed`` | ``pla.proposal_refused``
``pla.decision_requested``
    -> ``pla.approved`` | ``pla.rejected`` | ``pla.decision_refused``
``pla.approved``, in EXECUTE
    -> ``pla.execution_requested`` -> ``hid.*`` -> ``pla.executed`` | ``hid.outcome_unknown`` -> ``pla.proposal_closed``
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pmagent.contracts.control import Channel, OperatorId
from pmagent.contracts.model import ModelLimits
from pmagent.contracts.payload import Effect, Payload, blob, event_type
from pmagent.contracts.pla import Action, ActionClass, ActionType, CredentialPolicy, Decision, PlaMode

GOAL_CHARS_MAX = 16_384
NAME_CHARS_MAX = 200
LOOKED_MS_MAX = 86_400_000

LayoutName = Annotated[str, Meta(max_length=32)]
MachineName = Annotated[str, Meta(max_length=64)]
Proof = Literal["unsaid", "none", "secret", "console"]
"""How it is known who asks. ``none``: somebody says so; ``secret``: with the operator's secret; ``console``: in a
session of the console that was opened with it. ``unsaid``: an earlier release did not say."""

ShortText = Annotated[str, Meta(max_length=2000)]

# --- what operators and borders say (facts) -----------------------------------------------------------------------


@event_type("pla.mode_requested", request=True)
class PlaModeRequested(Payload, frozen=True, kw_only=True):
    """An operator wants ``mode``: up by one step, or down to any lower one. ``action_class``: what the kernel's mode is
    to judge typing as, from the next arming on."""

    mode: PlaMode
    operator_id: OperatorId
    channel: Channel
    reason: Annotated[str, Meta(max_length=500)] = ""
    action_class: ActionClass = "feature_work"


class FrameSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where frames come from: a folder of pictures or a video device (an absolute path). ``keep``: whether a frame's
    picture is kept as a blob; its digest always is."""

    path: Annotated[str, Meta(min_length=1, max_length=4096)]
    keep: bool = True


@event_type("pla.proposal_requested", request=True)
class PlaProposalRequested(Payload, frozen=True, kw_only=True):
    """Propose something: what ``goal`` states literally (``type: …``, ``keys: …``, ``move: …``, ``click: …``), or,
    where ``model`` names one, what that makes of the newest frame and the goal.

    ``action`` is what the goal states, None where it states nothing; its secrets, and the goal's, are masked, and
    ``masked`` says so. ``digest`` (hex) is that of the plain action, which then only the live process holds, in memory;
    ``findings`` names the credentials that were found in it, ``objection`` says what stands against the plain one.
    ``frame``: where to take a frame from first. ``lifetime_s``: seconds that the proposal stands open. ``two_persons``:
    who asked may not approve, and both have to prove who they are; ``proof``: how who asks did. ``layout`` and
    ``machine``: the keyboard layout and the name of the machine that is typed on, as declared ("": not);
    ``undeclared``: whether the linked device types what names no layout (True, too, while none is linked).
    """

    goal: Annotated[str, Meta(max_length=GOAL_CHARS_MAX)]
    requested_by: OperatorId
    channel: Channel
    action: Action | None = None
    masked: bool = False
    digest: str = ""
    chars: Annotated[int, Meta(ge=0)] = 0
    findings: list[str] = []
    objection: ShortText = ""
    objection_kind: str = ""
    rationale: ShortText = ""
    policy: CredentialPolicy = "refuse"
    frame: FrameSource | None = None
    model: Annotated[str, Meta(max_length=NAME_CHARS_MAX)] = ""
    limits: ModelLimits = ModelLimits()
    lifetime_s: Annotated[float, Meta(gt=0, le=86_400)] = 300.0
    two_persons: bool = False
    layout: LayoutName = ""
    machine: MachineName = ""
    proof: Proof = "unsaid"
    undeclared: bool = True


@event_type("pla.observe_requested", request=True)
class PlaObserveRequested(Payload, frozen=True, kw_only=True):
    """Look at the newest frame, and propose nothing."""

    frame: FrameSource
    requested_by: OperatorId
    channel: Channel


@event_type("pla.decision_requested", request=True)
class PlaDecisionRequested(Payload, frozen=True, kw_only=True):
    """An operator decides on a proposal. ``digest`` is that of the bytes that were shown. A rejection has a
    ``reason``; ``acknowledged``: the operator knows of the credentials in it. ``seen_mode``: the mode in which it was
    shown, on which it hangs whether an approval types at once ("": it was not said); ``looked_ms``: for how many
    milliseconds it was shown; ``proof``: how it is known who decides. ``layout`` and ``machine``: what is declared of
    the machine now (None: it was not said); ``two_persons``: whether they are demanded now."""

    proposal_id: Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
    decision: Decision
    digest: Annotated[str, Meta(max_length=64)]
    operator_id: OperatorId
    channel: Channel
    reason: Annotated[str, Meta(max_length=500)] = ""
    acknowledged: bool = False
    seen_mode: PlaMode | Literal[""] = ""
    looked_ms: Annotated[int, Meta(ge=0, le=LOOKED_MS_MAX)] = 0
    layout: LayoutName | None = None
    machine: MachineName | None = None
    proof: Proof = "unsaid"
    two_persons: bool = False


@event_type("pla.revealed")
class PlaRevealed(Payload, frozen=True, kw_only=True):
    """The plain text of a masked proposal was handed out of memory; nothing of it stands here. ``operator_id`` is who
    asked for it, over ``channel``; "" of a program that did not say."""

    proposal_id: Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
    digest: Annotated[str, Meta(max_length=64)]
    operator_id: Annotated[str, Meta(max_length=64)]
    channel: Channel


class OperatorRequest(Payload, frozen=True, kw_only=True):
    """An operator asks for something."""

    operator_id: OperatorId
    channel: Channel


@event_type("pla.arm_requested", request=True)
class PlaArmRequested(OperatorRequest, frozen=True, kw_only=True):
    """An operator wants the device armed. ``keeps_mode``: a refusal changes nothing else. Without it, as in logs of
    earlier releases, a request in another mode than EXECUTE is a violation and lowers the mode to OBSERVE."""

    keeps_mode: bool = False


@event_type("pla.disarm_requested", request=True)
class PlaDisarmRequested(OperatorRequest, frozen=True, kw_only=True):
    """Somebody wants the device disarmed; anybody may."""

    reason: Annotated[str, Meta(max_length=500)] = ""


@event_type("pla.end_requested", request=True)
class PlaEndRequested(OperatorRequest, frozen=True, kw_only=True):
    """An operator ends the session."""


@event_type("pla.contract_broken", request=True)
class PlaContractBroken(Payload, frozen=True, kw_only=True):
    """A border got a document that is not what its contract says, and took nothing of it. ``contract``: its name;
    ``kind``: the row of the specification's table; ``pointer``: where in it (JSON pointer); ``text`` says what, with
    nothing of its content."""

    contract: Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
    kind: str
    pointer: Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
    text: ShortText
    by: Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
    channel: Channel


# --- frames -------------------------------------------------------------------------------------------------------


@event_type(
    "pla.frame_requested",
    effect=Effect(
        repeatable=True, limit_s=60.0, concurrency=1, bulky=True, outcomes=("pla.frame_observed", "pla.frame_failed")
    ),
)
class PlaFrameRequested(Payload, frozen=True, kw_only=True):
    """Take the newest frame of ``source`` and read what stands on it (an inward effect)."""

    source: FrameSource


@event_type("pla.frame_observed")
class PlaFrameObserved(Payload, frozen=True, kw_only=True):
    """A frame: ``name`` of the file or device, ``sha256`` and ``size`` of the picture's bytes, ``width`` and ``height``
    in pixels, ``ocr_text`` as read by ``ocr`` (program and version; "" when none is installed, ``note`` says so).
    ``kept``: the picture is a blob."""

    request: int
    name: Annotated[str, Meta(max_length=4096)]
    media_type: str
    sha256: Annotated[str, blob("size", "kept")]
    size: int
    width: int
    height: int
    ocr_text: Annotated[str, Meta(max_length=40_000)]
    ocr: Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
    note: ShortText = ""
    kept: bool = True


@event_type("pla.frame_failed")
class PlaFrameFailed(Payload, frozen=True, kw_only=True):
    """There is no frame: ``code`` (no_frame, no_source, not_a_picture, too_large, timed_out, no_program), in words, and
    what would mend it."""

    request: int
    code: str
    text: ShortText
    mend: ShortText


class SessionAnswer(Payload, frozen=True, kw_only=True):
    """The answer to the request at position ``request``, in the session that stands."""

    request: int
    session_id: str


@event_type("pla.observed")
class PlaObserved(SessionAnswer, frozen=True, kw_only=True):
    """Answer to ``pla.observe_requested``: the frame at position ``frame`` (0: none, ``reasons`` say why)."""

    frame: int
    reasons: list[str] = []
    mend: list[str] = []


# --- sessions and modes -------------------------------------------------------------------------------------------


@event_type("pla.session_began")
class PlaSessionBegan(Payload, frozen=True, kw_only=True):
    """A session stands; at most one does. ``operator_id``: whose act it began with."""

    session_id: str
    operator_id: OperatorId
    mode: PlaMode


@event_type("pla.session_ended")
class PlaSessionEnded(Payload, frozen=True, kw_only=True):
    """It is over. ``state``: complete, or failed when it was cut off."""

    session_id: str
    state: Literal["complete", "failed"]
    reason: str


@event_type("pla.mode_changed")
class PlaModeChanged(Payload, frozen=True, kw_only=True):
    """The mode is ``mode`` now. ``who``: an operator, or the part of the system that lowered it; ``code``: requested,
    killed, link_lost, heartbeat_stale, contract_mismatch, device_reset, lease_lost, outcome_unknown, mode_mismatch,
    kernel_blocked, restarted, ended or halted; ``why`` in words. ``action_class``: what typing counts as from here
    on."""

    session_id: str
    previous: PlaMode
    mode: PlaMode
    who: str
    channel: Channel
    code: str
    why: str
    action_class: ActionClass = "feature_work"


@event_type("pla.mode_answered")
class PlaModeAnswered(SessionAnswer, frozen=True, kw_only=True):
    """Answer to ``pla.mode_requested`` and ``pla.end_requested``: the mode now, and why it is not the one asked for."""

    accepted: bool
    mode: PlaMode
    reasons: list[str] = []
    mend: list[str] = []


# --- proposals ----------------------------------------------------------------------------------------------------


@event_type("pla.proposed")
class PlaProposed(SessionAnswer, frozen=True, kw_only=True):
    """A proposal, open until it is decided on or ``expires_at``. ``digest`` is what an approval is bound to;
    ``requested_by`` and ``proposed_by`` (rules, or a model's name) say who asks. ``frame``: position of the frame it
    rests on, 0 for none; ``ocr_text`` the first of what stood there. ``machine``: the name of the machine that it is
    for, where one is declared; the action has its layout."""

    proposal_id: str
    mode: PlaMode
    action: Action
    masked: bool
    digest: str
    chars: int
    rationale: str
    credential_warning: bool
    findings: list[str]
    policy: CredentialPolicy
    requested_by: str
    proposed_by: str
    channel: Channel
    expires_at: str
    frame: int = 0
    ocr_text: str = ""
    two_persons: bool = False
    machine: str | msgspec.UnsetType = msgspec.UNSET


@event_type("pla.proposal_refused")
class PlaProposalRefused(SessionAnswer, frozen=True, kw_only=True):
    """Nothing is proposed. ``code``: mode, open (another one is), goal, unfit, credential, frame, model, too_many,
    unproven (of two persons the first has not proved who they are), device (it types by a declared layout only)."""

    code: str
    reasons: list[str]
    mend: list[str]


@event_type("pla.proposal_closed")
class PlaProposalClosed(Payload, frozen=True, kw_only=True):
    """The last word on a proposal: executed, aborted, not_executed, unknown, recorded (approved, and not to be
    executed), rejected, expired or withdrawn."""

    session_id: str
    proposal_id: str
    digest: str
    outcome: str
    why: str = ""


@event_type("pla.approved")
class PlaApproved(SessionAnswer, frozen=True, kw_only=True):
    """One operator approves one action, once, until ``expires_at``. ``executes``: in EXECUTE; else it is recorded."""

    proposal_id: str
    digest: str
    operator_id: str
    channel: Channel
    expires_at: str
    executes: bool
    credential_acknowledged: bool = False


@event_type("pla.rejected")
class PlaRejected(SessionAnswer, frozen=True, kw_only=True):
    """An operator rejects a proposal, with a reason."""

    proposal_id: str
    digest: str
    operator_id: str
    channel: Channel
    reason: str


@event_type("pla.decision_refused")
class PlaDecisionRefused(SessionAnswer, frozen=True, kw_only=True):
    """The operator's decision counts for nothing. ``code``: unknown, decided, expired, digest, changed, self,
    credential, wait, reason, mode, not_armed, killed, device, busy. ``digest``: the one that the proposal has ("":
    there is none)."""

    proposal_id: str
    code: str
    digest: str
    reasons: list[str]
    mend: list[str]


@event_type("pla.violation")
class PlaViolation(Payload, frozen=True, kw_only=True):
    """A contract was violated, and what would have followed does not (docs/design.md §16.9). ``kind``:
    schema_validation, missing_field, bound_exceeded, mode_mismatch, missing_approval, contract_mismatch; ``severity``:
    warning or error; ``handling``: what was done; ``contract``: the document concerned."""

    session_id: str
    kind: str
    severity: Literal["warning", "error"]
    contract: str
    text: str
    handling: str
    by: str
    proposal_id: str = ""
    execution_id: str = ""


# --- executions ---------------------------------------------------------------------------------------------------


@event_type("pla.execution_requested")
class PlaExecutionRequested(Payload, frozen=True, kw_only=True):
    """The warden to the HID link: carry out what the decision requested at position ``approval`` approved. The link
    believes none of it, and looks for the approval itself."""

    session_id: str
    proposal_id: str
    execution_id: str
    approval: int
    digest: str
    action: Action
    masked: bool
    operator_id: str
    decided_at: str


@event_type("pla.executed")
class PlaExecuted(Payload, frozen=True, kw_only=True):
    """How an execution ended, as far as that is known. ``outcome``: done, aborted (``done`` of ``of`` reports had been
    sent), not_executed (nothing was typed). Done means that the reports were handed to USB."""

    session_id: str
    proposal_id: str
    execution_id: str
    action_type: ActionType
    outcome: Literal["done", "aborted", "not_executed"]
    done: int
    of: int
    code: str
    why: str


@event_type("pla.arm_answered")
class PlaArmAnswered(SessionAnswer, frozen=True, kw_only=True):
    """Answer to ``pla.arm_requested`` or ``pla.disarm_requested``: whether the device is armed now."""

    armed: bool
    accepted: bool
    reasons: list[str] = []
    mend: list[str] = []
