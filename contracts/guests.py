"""Guests' events: sessions of agents that pmagent did not write, their calls of tools, verdicts and approvals
(docs/guests.md).

Causes and effects::

    guest.call_asked -> guest.call_decided (-> guest.approval_asked | guest.approval_used)
    guest.answer_requested -> guest.approval_given (-> guest.approval_used) | guest.approval_rejected
                              | guest.answer_refused
    guest.call_ended | guest.wait_ended | guest.session_ended -> guest.call_closed
    guest.session_ended -> guest.session_closed
    guest.definitions_read -> guest.definitions_changed
    guest.policy_edit_requested -> guest.policy_edit_accepted | guest.policy_edit_refused

Each call that was asked ends once: with ``guest.call_decided`` where that denies it in mode enforce (refused), else
with ``guest.call_closed``. A call, and the approval that it asks for, is numbered by the position of its
``guest.call_asked``. The session's id is the correlation of all that belongs to it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from pmagent.contracts.control import REASON_CHARS_MAX, Channel, OperatorId
from pmagent.contracts.guest_calls import Answer, Call, Change, Definition, Harness, Policy, Rule, Verdict
from pmagent.contracts.orchestra import NetContact
from pmagent.contracts.payload import END, Payload, blob, event_type
from pmagent.contracts.pla_events import Proof

GUESTS: Final = "guests"
"""The actor that judges."""

NAME_CHARS_MAX: Final = 200
PATH_CHARS_MAX: Final = 4096
TEXT_CHARS_MAX: Final = 4000
RULE_USES_MAX: Final = 1000

GuestMode = Literal["observe", "enforce"]
"""``observe``: calls are recorded, and the verdict is what it would have been; ``enforce``: it holds."""
Source = Literal["live", "spool", "import"]
"""How a fact came: at once, later from the folder where hooks leave what no daemon took, or from a transcript."""

SessionId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}" + END)]
Name = Annotated[str, Meta(max_length=NAME_CHARS_MAX)]
Path = Annotated[str, Meta(max_length=PATH_CHARS_MAX)]
Text = Annotated[str, Meta(max_length=TEXT_CHARS_MAX)]
Note = Annotated[str, Meta(max_length=REASON_CHARS_MAX)]
Sha256 = Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?" + END)]
Position = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]


class GuestFact(Payload, frozen=True, kw_only=True):
    """Base of what hooks and transcripts say of a session. ``seen``: when that was (RFC 3339, UTC); "" for what came at
    once: then it is the event's time."""

    session: SessionId
    source: Source = "live"
    seen: Annotated[str, Meta(max_length=32)] = ""


# --- facts --------------------------------------------------------------------------------------------------------


@event_type("guest.policy_read")
class GuestPolicyRead(Payload, frozen=True, kw_only=True):
    """The policy's files have been read, and are not what they were."""

    policy: Policy


@event_type("guest.session_started")
class GuestSessionStarted(GuestFact, frozen=True, kw_only=True):
    """A session began: its hooks reach the daemon. ``version`` and ``model`` are the harness's words, ``how`` too
    (startup, resume, …). ``wall``: the wall behind which it works ("": none)."""

    harness: Harness
    mode: GuestMode
    cwd: Path = ""
    version: Name = ""
    model: Name = ""
    how: Name = ""
    wall: Name = ""


@event_type("guest.wall_started")
class GuestWallStarted(Payload, frozen=True, kw_only=True):
    """An operator starts an agent in a sandbox, under the id ``wall``. It may write ``writes``, read ``reads`` too, and
    reach ``hosts``; ``login``: it has its harness's own folder of this user, and the key."""

    wall: Name
    harness: Harness
    mode: GuestMode
    operator_id: OperatorId
    program: Path
    hosts: list[Name]
    writes: list[Path]
    reads: list[Path]
    login: bool


@event_type("guest.wall_ended")
class GuestWallEnded(Payload, frozen=True, kw_only=True):
    """The agent of this wall has ended, with all that it started. ``exceeded``: the limit for which it was killed.
    ``contacts``: whom it reached or asked for, ``contacts_dropped`` more were not kept; ``planted``: what it left that
    may not lie there, and where that was moved; ``branch``: of its commits ("": none were taken over)."""

    wall: Name
    exit_code: int | None
    signal: int | None
    exceeded: Text
    contacts: list[NetContact]
    contacts_dropped: Count
    planted: list[Text]
    branch: Name = ""


@event_type("guest.session_ended")
class GuestSessionEnded(GuestFact, frozen=True, kw_only=True):
    """A session is over. ``transcript``: whether the harness's own record of it was held against the log; ``calls``:
    how many calls stand there, ``unseen`` of which the log does not know."""

    reason: Name = ""
    transcript: Literal["read", "none", "unreadable"] = "none"
    calls: Count = 0
    unseen: Count = 0


@event_type("guest.agent_started")
class GuestAgentStarted(GuestFact, frozen=True, kw_only=True):
    """A subagent began; ``parent``: the agent that started it ("": the session's own)."""

    agent: Name
    agent_type: Name = ""
    parent: Name = ""


@event_type("guest.agent_stopped")
class GuestAgentStopped(GuestFact, frozen=True, kw_only=True):
    """A subagent has ended."""

    agent: Name
    agent_type: Name = ""


@event_type("guest.call_asked", request=True)
class GuestCallAsked(GuestFact, frozen=True, kw_only=True):
    """An agent wants to call a tool. ``call`` is the harness's id of it ("": it has none), ``facts`` all that the
    verdict depends on, ``digest`` (hex) the HMAC-SHA-256, with the log's key, of the call's unmasked canonical form.
    ``input`` is the tool's, masked; where it is large, it is the blob ``input_sha256`` of ``input_size`` bytes, and
    ``input_kept``. ``needs_start``: in mode enforce it is refused if the start of its session was not heard."""

    call: Name
    facts: Call
    digest: Sha256
    mode: GuestMode
    input: Any = None
    input_size: Count = 0
    input_sha256: Annotated[Sha256, blob("input_size", "input_kept")] = ""
    input_kept: bool = False
    needs_start: bool = False


@event_type("guest.call_ended")
class GuestCallEnded(GuestFact, frozen=True, kw_only=True):
    """A tool has returned. ``ok``: without an error; ``output``: the beginning of what it gave, masked; where that is
    larger, the whole is the blob ``output_sha256`` of ``output_size`` bytes, and ``output_kept``. ``started``: the
    subagent that it started, where its harness says so."""

    call: Name
    tool: Name
    agent: Name = ""
    ok: bool = True
    duration_ms: Count = 0
    output: Text = ""
    output_size: Count = 0
    output_sha256: Annotated[Sha256, blob("output_size", "output_kept")] = ""
    output_kept: bool = False
    started: Name = ""


@event_type("guest.call_unseen")
class GuestCallUnseen(GuestFact, frozen=True, kw_only=True):
    """A call stands in the harness's transcript that no hook told of: nobody judged it. ``input``: the beginning of its
    JSON, masked."""

    call: Name
    tool: Name
    agent: Name = ""
    input: Text = ""


@event_type("guest.changed")
class GuestChanged(GuestFact, frozen=True, kw_only=True):
    """Settings, hooks, plugins or tool definitions of the harness have changed while a session runs. ``digest``:
    SHA-256 of the file's content ("": there is none); ``refused``: the harness was told not to take it."""

    what: Name
    path: Path = ""
    digest: Sha256 = ""
    refused: bool = False


@event_type("guest.definitions_read")
class GuestDefinitionsRead(GuestFact, frozen=True, kw_only=True):
    """The definitions that the session's harness goes by, as its files say: read at the start of a session and
    when they change, and recorded where they are not as they were recorded last."""

    harness: Harness
    definitions: list[Definition]


@event_type("guest.noted")
class GuestNoted(GuestFact, frozen=True, kw_only=True):
    """Somebody, or a script, notes something."""

    text: Annotated[str, Meta(min_length=1, max_length=TEXT_CHARS_MAX)]
    by: Name = ""


@event_type("guest.wait_ended")
class GuestWaitEnded(GuestFact, frozen=True, kw_only=True):
    """A hook waits for an operator's answer no longer: the time that it may is over (``late``), or it has gone.
    ``deferred``: its harness was told to end, and to ask about this call again when the session is resumed."""

    call_asked: Position
    why: Literal["late", "gone"]
    deferred: bool = False


@event_type("guest.answer_requested", request=True)
class GuestAnswerRequested(Payload, frozen=True, kw_only=True):
    """An operator approves or rejects. ``digest``: that of the call that was shown; ``asking``: the session among whose
    processes the request was made ("": none), ``proof``: how it is known who asks. ``rule``: allows such calls in the
    session until it expires, or has let ``rule_uses`` through (0: any number)."""

    approval: Position
    decision: Literal["approve", "reject"]
    digest: Sha256
    operator_id: OperatorId
    channel: Channel
    proof: Proof = "unsaid"
    note: Note = ""
    asking: Annotated[str, Meta(max_length=100)] = ""
    rule: Rule | None = None
    rule_uses: Annotated[int, Meta(ge=0, le=RULE_USES_MAX)] = 0


@event_type("guest.policy_edit_requested", request=True)
class GuestPolicyEditRequested(Payload, frozen=True, kw_only=True):
    """An operator accepts a text as a layer's file. ``sha256``: of the text, ``before``: of the file that they were
    shown, ``found``: of the file that lies there ("": none). ``asking`` and ``proof`` as of an approval's answer."""

    layer: Literal["user", "project"]
    before: Sha256
    found: Sha256
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}" + END)]
    operator_id: OperatorId
    channel: Channel
    proof: Proof = "unsaid"
    asking: Annotated[str, Meta(max_length=100)] = ""


# --- decisions ----------------------------------------------------------------------------------------------------


@event_type("guest.call_decided")
class GuestCallDecided(Payload, frozen=True, kw_only=True):
    """The verdict on the call at position ``request``. ``verdict``: the judge's, in the kernel's ``mode`` and with the
    session's ``labels``; ``answer``: what holds, which is another one where an ``approval`` was there to be used (0:
    none), or something stands against it beside the policy (``why``)."""

    request: Position
    answer: Answer
    verdict: Verdict
    mode: str
    labels: list[str] = []
    approval: Count = 0
    why: Text = ""


@event_type("guest.approval_asked")
class GuestApprovalAsked(Payload, frozen=True, kw_only=True):
    """The call at position ``approval`` waits for operators: ``needed`` different ones, until ``expires``."""

    approval: Position
    agent: Name
    tool: Name
    digest: Sha256
    needed: Annotated[int, Meta(ge=1)]
    expires: str


@event_type("guest.approval_given")
class GuestApprovalGiven(Payload, frozen=True, kw_only=True):
    """Answer to the request at position ``request``: it counts. ``given`` of ``needed`` operators have approved; when
    all have, one such call passes until ``expires``. ``rule``: holds in this session from now on."""

    request: Position
    approval: Position
    session: SessionId
    operator_id: OperatorId
    channel: Channel
    given: Annotated[int, Meta(ge=1)]
    needed: Annotated[int, Meta(ge=1)]
    expires: str
    note: Note = ""
    rule: Rule | None = None


@event_type("guest.approval_rejected")
class GuestApprovalRejected(Payload, frozen=True, kw_only=True):
    """Answer to the request at position ``request``: the call does not pass."""

    request: Position
    approval: Position
    session: SessionId
    operator_id: OperatorId
    channel: Channel
    note: Note = ""


@event_type("guest.answer_refused")
class GuestAnswerRefused(Payload, frozen=True, kw_only=True):
    """Answer to the request at position ``request``: it changes nothing. ``code``: unknown (nothing waits there), over
    (it was answered, or has expired), digest (another call was shown), self (it came from the session that asks), twice
    (of the same operator), unproven (several operators are needed, and nobody knows who this is), rule (it cannot hold
    as it is)."""

    request: Position
    approval: Position
    code: Literal["unknown", "over", "digest", "self", "twice", "unproven", "rule"]
    reasons: list[str]
    mend: list[str]


@event_type("guest.approval_used")
class GuestApprovalUsed(Payload, frozen=True, kw_only=True):
    """The call at position ``call_asked`` passes by this approval, which lets no other pass."""

    approval: Position
    call_asked: Position


@event_type("guest.approval_expired")
class GuestApprovalExpired(Payload, frozen=True, kw_only=True):
    """Its time is over; ``given``: so many operators had approved."""

    approval: Position
    given: Count


@event_type("guest.call_closed")
class GuestCallClosed(Payload, frozen=True, kw_only=True):
    """The end of the call at position ``call_asked``: ``ended`` (the tool returned), ``refused`` (an operator said no),
    ``expired`` (nobody answered while it waited), or ``unknown``: it was let through, and nobody saw its end."""

    call_asked: Position
    end: Literal["ended", "refused", "expired", "unknown"]
    why: Text = ""


@event_type("guest.end_unmatched")
class GuestEndUnmatched(Payload, frozen=True, kw_only=True):
    """The ``guest.call_ended`` at position ``ended`` ends no call that was let through: it ran ungated."""

    ended: Position
    call: Name
    tool: Name


@event_type("guest.session_closed")
class GuestSessionClosed(Payload, frozen=True, kw_only=True):
    """A session is closed. ``proof``: ``gated`` (its transcript holds no call that was not asked), ``in_part`` (it
    holds ``unseen`` ones, or such a one ended), ``not_proven`` (``reasons`` say why). Of ``asked`` calls so many were
    ``allowed``, ``refused``, or ended as ``unknown``; in mode observe ``refused`` ones would have been."""

    session: SessionId
    proof: Literal["gated", "in_part", "not_proven"]
    unseen: Count
    asked: Count
    allowed: Count
    refused: Count
    unknown: Count
    reasons: list[str] = []


@event_type("guest.definitions_changed")
class GuestDefinitionsChanged(Payload, frozen=True, kw_only=True):
    """The definitions that the session's harness goes by are not those that were read last, in this session or
    an earlier one; ``widens``: one of the changes does."""

    session: SessionId
    harness: Harness
    changes: list[Change]
    widens: bool


@event_type("guest.policy_edit_accepted")
class GuestPolicyEditAccepted(Payload, frozen=True, kw_only=True):
    """Answer to the request at position ``request``: this text becomes the layer's file. That it holds is said by the
    ``guest.policy_read`` whose layer has this digest."""

    request: Position
    layer: Literal["user", "project"]
    before: Sha256
    sha256: Sha256
    operator_id: OperatorId
    channel: Channel


@event_type("guest.policy_edit_refused")
class GuestPolicyEditRefused(Payload, frozen=True, kw_only=True):
    """Answer to the request at position ``request``: the file stays. ``code``: self (it came from among a session's
    processes), changed (the file is not the one that was shown), same (it has this text already)."""

    request: Position
    layer: Literal["user", "project"]
    code: Literal["self", "changed", "same"]
    reasons: list[str]
    mend: list[str]
