"""The PLA's state as documents, for screens and programs; from a live engine or a folded one (docs/design.md §11.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from pmagent.actors.core.engine import Engine
from pmagent.actors.pla.warden.state import ProposalView, WardenState
from pmagent.contracts.pla import (
    MIN_ACTION_DELAY_MS,
    OCR_CHARS_MAX,
    TEXT_CHARS_MAX,
    Action,
    TypeText,
    action_type,
    layout_of,
    payload,
)
from pmagent.events.errors import PmagentError
from pmagent.events.event import parse_time

RELIED_ON: Final = ("brain", "warden", "hid")
"""Actors without which nothing is proposed, approved or typed."""


class NoSuchProposal(PmagentError, exit_code=1):
    """The log's newest proposals hold none that is called so, or several."""


class NotHeld(PmagentError, exit_code=1):
    """The plain text of a masked proposal is in nobody's memory."""


def warden(engine: Engine) -> WardenState:
    """The warden's state."""
    state: WardenState = engine.states["warden"]
    return state


def open_names(engine: Engine) -> list[str]:
    """The proposals that wait for a decision."""
    return [view.proposed.proposal_id for view in warden(engine).open_proposals]


def withdrawn(engine: Engine, names: list[str]) -> list[str]:
    """Those of the proposals that are withdrawn now."""
    known = warden(engine).proposals
    return [name for name in names if name in known and known[name].outcome == "withdrawn"]


def open_work(engine: Engine) -> Iterator[str]:
    """A line for the session and for each proposal that is open."""
    state = warden(engine)
    if state.session_id:
        yield f"PLA session {state.session_id[:8]} in {state.mode}"
    for view in (*state.open_proposals, *filter(None, (state.executing,))):
        yield f"PLA proposal {view.proposed.proposal_id[:8]}"


def status_document(engine: Engine, now: str, *, running: bool, trouble: str | None = None) -> dict[str, Any]:
    """Session, mode, device, and the proposal that is open or carried out. ``running``: a daemon tells it, so it is how
    things are; else it is what the log says. ``trouble``: why there is no device. ``typing`` is for who
    holds the device's line to tell: how many of its reports an execution has sent."""
    state = warden(engine)
    session = {"session_id": state.session_id, "began_at": state.began_at, "operator_id": state.operator_id}
    device = state.device
    current = next(iter(state.open_proposals), None) or state.executing
    return {
        "running": running,
        "daemon": "running" if running else "none",
        "mode": state.mode,
        "session": session if state.session_id else None,
        "ending": state.ending or None,
        "action_class": state.action_class,
        "kernel": state.kernel or None,
        "device": msgspec.structs.asdict(device) if device is not None else None,
        "trouble": trouble,
        "armed": state.armed,
        "typing": None,
        "proposal": proposal_document(current, now) if current is not None else None,
        "halted": sorted(name for name in engine.halted if name in RELIED_ON),
    }


def list_document(engine: Engine, now: str, count: int) -> dict[str, Any]:
    """The newest ``count`` proposals, newest first."""
    newest = sorted(warden(engine).proposals.values(), key=lambda view: view.position, reverse=True)
    return {"proposals": [proposal_document(view, now) for view in newest[:count]]}


def called(engine: Engine, name: str) -> ProposalView:
    """The proposal whose id is, or alone begins with, ``name``; without one the open one. Raises NoSuchProposal."""
    state = warden(engine)
    if not name:
        current = next(iter(state.open_proposals), None)
        if current is None:
            raise NoSuchProposal("no proposal is open", "pmagent pla list shows the newest")
        return current
    found = [view for key, view in state.proposals.items() if key == name]
    found = found or [view for key, view in state.proposals.items() if key.startswith(name)]
    if not found:
        raise NoSuchProposal(f"there is no proposal {name[:64]!r} among the newest", "pmagent pla list shows them")
    if len(found) > 1:
        names = ", ".join(view.proposed.proposal_id for view in found[:4])
        raise NoSuchProposal(f"{len(found)} proposals are called so: {names}", "give more of the id")
    return found[0]


def proposal_document(view: ProposalView, now: str) -> dict[str, Any]:
    """A proposal, what has come of it, and how many seconds it stands open still."""
    proposed = view.proposed
    fields = msgspec.structs.asdict(proposed)
    for name in ("request", "action", "mode", "machine"):
        del fields[name]
    return {
        "proposal_id": proposed.proposal_id,
        "stands": view.stands,
        "outcome": view.outcome or None,
        "why": view.why or None,
        "action_type": action_type(proposed.action),
        "payload": payload(proposed.action),
        **fields,
        "layout": layout_of(proposed.action) or None,
        "machine": proposed.machine or None,
        "proposed_in": proposed.mode,
        "proposed_at": view.proposed_at,
        "seconds_left": _seconds(now, proposed.expires_at) if view.stands == "open" else 0.0,
        "decided_by": view.decided_by or None,
        "decided_at": view.decided_at or None,
        "decided_over": view.channel or None,
        "approval_expires_at": view.approval_expires_at or None,
        "execution_id": view.execution_id or None,
        "closed_at": view.closed_at or None,
        "position": view.position,
    }


def contract_document(view: ProposalView) -> dict[str, Any]:
    """The proposal as the contract's action_proposal. Text masked in the log is masked in it too, and cut to the
    contract's length: a mask may be longer than what it hides."""
    proposed = view.proposed
    shown = proposed.action
    if proposed.masked and isinstance(shown, TypeText):
        shown = msgspec.structs.replace(shown, text=shown.text[:TEXT_CHARS_MAX])
    document = {
        "proposal_id": proposed.proposal_id,
        "timestamp": view.proposed_at,
        "mode": proposed.mode,
        "action_type": action_type(shown),
        "payload": payload(shown),
        "rationale": proposed.rationale,
        "credential_warning": proposed.credential_warning,
        "safety_bounds": {"max_chars": TEXT_CHARS_MAX, "rate_limit_ms": MIN_ACTION_DELAY_MS},
    }
    if proposed.frame:
        document["screen_context"] = {"ocr_text": proposed.ocr_text[:OCR_CHARS_MAX]}
    return document


def _seconds(now: str, until: str) -> float:
    return round(max(0.0, (parse_time(until) - parse_time(now)).total_seconds()), 3)


def revealed(action: Action | None) -> dict[str, Any] | None:
    """The payload of a plain action, if there is one."""
    return None if action is None else payload(action)
