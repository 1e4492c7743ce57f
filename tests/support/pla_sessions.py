"""Histories of sessions as the PLA's actors leave them, told event by event, and the documents that they lead to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from pmagent.actors.pla.violations import HANDLING, violation
from pmagent.contracts.content import whole
from pmagent.contracts.hid import HidCommitRequested, HidOutcomeUnknown
from pmagent.contracts.payload import decode, encode, type_of
from pmagent.contracts.pla import Action, TypeText, digest
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaDecisionRefused,
    PlaExecuted,
    PlaExecutionRequested,
    PlaModeChanged,
    PlaProposalClosed,
    PlaProposed,
    PlaRejected,
    PlaSessionBegan,
    PlaSessionEnded,
)
from pmagent.events.event import Event, LogCreated, time_after
from pmagent.projections.core.documents import Documents, Taken
from pmagent.projections.sessions.entries import WRITERS
from pmagent.projections.sessions.sessions import Sessions, SessionsView
from pmagent.projections.views.sessions import Session

START = "2026-11-22T12:00:00.000000Z"
LOG_ID = "ab" * 16
SESSION = "pla-00000000000000000000000000000001"
PROPOSAL = "prop-00000000000000000000000000000001"
EXECUTION = "exec-00000000000000000000000000000001"
NO_BLOBS: Any = None
HELLO = TypeText(text="hello")


class Tale:
    """Events in the order in which they are told."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.tell(LogCreated(log_id=LOG_ID), "log")

    def tell(self, payload: msgspec.Struct, actor: str = "", *, causation: int = 0, correlation: str = "") -> Event:
        """The next event: a decision of ``actor``, by default the one whose it is; a fact where that is nobody."""
        writers = WRITERS.get(type(payload), frozenset())
        actor = actor or (min(writers) if writers else "")
        position, name, raw = len(self.events) + 1, type_of(payload), encode(payload)
        event = Event(
            position, time_after(START, position), f"e-{position}", "decision" if actor and actor != "log" else "fact",
            actor or "tests", name, correlation or SESSION, causation, decode(name, raw), raw,
        )  # fmt: skip
        self.events.append(event)
        return event

    def begin(self, session_id: str = SESSION) -> None:
        """A session stands."""
        self.tell(PlaSessionBegan(session_id=session_id, operator_id="alice", mode="OBSERVE"), correlation=session_id)

    def mode(self, previous: Any, mode: Any, code: str = "requested", who: str = "alice", **more: Any) -> None:
        """The mode changes."""
        fields: dict[str, Any] = {"session_id": SESSION, "channel": "cli", "why": "w", **more}
        self.tell(PlaModeChanged(previous=previous, mode=mode, who=who, code=code, **fields))

    def propose(self, action: Action = HELLO, **more: Any) -> None:
        """Something is proposed."""
        fields: dict[str, Any] = {
            "request": 1, "session_id": SESSION, "proposal_id": PROPOSAL, "mode": "SUGGEST", "masked": False,
            "digest": digest(action), "chars": len(getattr(action, "text", "")), "rationale": "the operator's goal",
            "credential_warning": False, "findings": [], "policy": "refuse", "requested_by": "alice",
            "proposed_by": "rules", "channel": "cli", "expires_at": time_after(START, 300),
        }  # fmt: skip
        self.tell(PlaProposed(action=action, **(fields | more)))

    def approve(self, *, executes: bool = True, **more: Any) -> None:
        """The proposal is approved, and to be executed."""
        fields: dict[str, Any] = {
            "request": 1, "session_id": SESSION, "proposal_id": PROPOSAL, "digest": digest(HELLO),
            "operator_id": "bob", "channel": "cli", "expires_at": time_after(START, 60),
        }  # fmt: skip
        self.tell(PlaApproved(executes=executes, **(fields | more)))
        if executes:
            self.tell(
                PlaExecutionRequested(
                    session_id=SESSION, proposal_id=PROPOSAL, execution_id=EXECUTION, approval=len(self.events),
                    digest=digest(HELLO), action=HELLO, masked=False, operator_id="bob", decided_at=START,
                )
            )  # fmt: skip

    def reject(self, reason: str = "wrong window") -> None:
        """The proposal is rejected."""
        self.tell(
            PlaRejected(
                request=1, session_id=SESSION, proposal_id=PROPOSAL, digest=digest(HELLO), operator_id="bob",
                channel="cli", reason=reason,
            )
        )  # fmt: skip

    def refuse(self, code: str = "digest", session_id: str = SESSION, proposal_id: str = PROPOSAL, at: int = 1) -> None:
        """A decision counts for nothing."""
        self.tell(
            PlaDecisionRefused(
                request=at, session_id=session_id, proposal_id=proposal_id, code=code, digest=digest(HELLO),
                reasons=["the decision is on other bytes"], mend=["look again"],
            )
        )  # fmt: skip

    def close(self, outcome: str, why: str = "w") -> None:
        """The last word on the proposal."""
        self.tell(
            PlaProposalClosed(
                session_id=SESSION, proposal_id=PROPOSAL, digest=digest(HELLO), outcome=outcome, why=why
            )
        )  # fmt: skip

    def commit(self) -> None:
        """The order to type is given."""
        self.tell(
            HidCommitRequested(
                permit=7, boot_id="0" * 16, execution_id=EXECUTION, digest=digest(HELLO), action_class="feature_work"
            )
        )  # fmt: skip

    def executed(self, outcome: Any = "done", done: int = 10, of: int = 10) -> None:
        """It has ended."""
        self.tell(
            PlaExecuted(
                session_id=SESSION, proposal_id=PROPOSAL, execution_id=EXECUTION, action_type="TYPE_TEXT",
                outcome=outcome, done=done, of=of, code="", why="",
            )
        )  # fmt: skip

    def unknown(self) -> None:
        """Nobody can tell how it has ended."""
        self.tell(
            HidOutcomeUnknown(
                session_id=SESSION, proposal_id=PROPOSAL, execution_id=EXECUTION, action_type="TYPE_TEXT", of=10,
                why="the device began anew",
            )
        )  # fmt: skip

    def violate(self, kind: Any = "bound_exceeded", session_id: str = SESSION, text: str = "too long") -> None:
        """A contract is violated."""
        self.tell(violation(kind, "action_proposal", text, "brain", session_id=session_id), "brain")

    def end(self, state: Any = "complete", reason: str = "ended by alice", session_id: str = SESSION) -> None:
        """The session is over."""
        self.tell(PlaSessionEnded(session_id=session_id, state=state, reason=reason), correlation=session_id)


KINDS = list(HANDLING)
"""The kinds of violations."""


def typing() -> Tale:
    """A session in which one text is proposed, approved and typed."""
    tale = Tale()
    tale.begin()
    tale.mode("OBSERVE", "SUGGEST")
    tale.propose()
    tale.mode("SUGGEST", "EXECUTE")
    tale.approve()
    tale.commit()
    tale.executed()
    tale.close("executed")
    tale.mode("EXECUTE", "OBSERVE", "ended")
    tale.end()
    return tale


def sums(events: Sequence[Event]) -> list[str]:
    """A sum for each event, as its line would have one."""
    return [f"{event.position:064x}" for event in events]


def folded(
    events: Sequence[Event], documents: Documents | None = None, projection: Sessions | None = None
) -> Documents:
    """The documents after these events, which follow those that ``documents`` have seen already."""
    documents = documents or Documents([projection or Sessions()])
    documents.fold(events, sums(events))
    return documents


def shown(documents: Documents) -> dict[str, bytes]:
    """All of them."""
    return {path: whole(content, NO_BLOBS) for path, content in documents.render().items()}


def plain(parts: Taken) -> dict[str, bytes]:
    """The documents that were given out, as bytes."""
    return {path: whole(part.content(), NO_BLOBS) for path, part in parts.items()}


def entries(events: Sequence[Event], path: str = f"sessions/{SESSION}.jsonl") -> list[dict[str, Any]]:
    """The entries of a session's log."""
    return [json.loads(line) for line in shown(folded(events))[path].splitlines()]


def job(events: Sequence[Event], session_id: str = SESSION) -> Any:
    """The session's job document."""
    return json.loads(shown(folded(events))[f"jobs/{session_id}.json"])


def view(events: Sequence[Event], session_id: str = SESSION) -> Session:
    """The projection's view of a session."""
    state = folded(events)._states["pla_sessions"]
    assert isinstance(state, SessionsView)
    return state.sessions[session_id]


def copied(documents: Documents, projection: Sessions) -> Documents:
    """The documents that a start from the snapshot cache would have."""
    other = Documents([projection])
    other.restore(other.decoded(documents.export()))
    return other
