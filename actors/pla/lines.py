"""The PLA's events, each in one line."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from pmagent.actors.core.lines import Line, line, shown
from pmagent.actors.pla.switch import said


def _to_type(data: dict[str, Any]) -> str:
    """An action, by its type and its fields."""
    action = data.get("action")
    fields = action if isinstance(action, dict) else {}
    text = ", ".join(shown(value) for name, value in fields.items() if name != "action_type")
    masked = " (masked)" if data.get("masked") is True else ""
    return f"{shown(fields.get('action_type'))} {text}{masked}"


def _to_execute(data: dict[str, Any]) -> str:
    return f"{shown(data.get('execution_id'))}: {_to_type(data)}"


def _proposed(data: dict[str, Any]) -> str:
    warned = ", CREDENTIALS" if data.get("credential_warning") is True else ""
    return f"{shown(data.get('proposal_id'))}{warned}: {_to_type(data)}"


def _told(made: Line, data: dict[str, Any]) -> str:
    return said(line(made, data))


_LINES: Final[dict[str, Line]] = {
    "hid.arm_requested": "arm {device_id}",
    "hid.armed": "armed, for {lease_ms} ms at a time",
    "hid.commit_requested": "carry out {execution_id}, once",
    "hid.disarm_requested": "disarm: {why}",
    "hid.disarmed": "disarmed",
    "hid.ended": "{execution_id} {state}: {done} of {of} reports sent {code}",
    "hid.lease_ended": "armed {armed}, switch {kill_switch_state}",
    "hid.lease_requested": "keep the lease renewed",
    "hid.linked": "{device_id} at {port}, contract {contract_version}, switch {kill_switch_state} {text}",
    "hid.lost": "{code}: {text}",
    "hid.outcome_unknown": "OUTCOME UNKNOWN of {execution_id}, at most {of} reports: {why}",
    "hid.ping_requested": "renew the lease",
    "hid.pinged": "armed {armed}, switch {kill_switch_state}",
    "hid.prepare_requested": _to_execute,
    "hid.prepared": "{execution_id} is prepared: {of} reports",
    "hid.refused": "the device refused: {text} ({code})",
    "hid.reported": "{mode}, light {led_state}, switch {kill_switch_state}, error {error_code}",
    "hid.silent": "no answer ({code}), sent {sent}: {text}",
    "hid.status_requested": "ask what became of {execution_id}",
    "hid.told": "{execution_id} is {state}, {done} of {of} reports sent {code}",
    "hid.tripped": "{code}: {text}",
    "pla.approved": "{operator_id} approves {proposal_id}, to be executed {executes}, until {expires_at}",
    "pla.arm_answered": "accepted {accepted}, armed {armed}; reasons: {reasons}",
    "pla.arm_requested": "{operator_id} wants the device armed",
    "pla.contract_broken": "{by} got no {contract}: {text} at {pointer}",
    "pla.decision_refused": "decision on {proposal_id} refused: {reasons} ({code})",
    "pla.decision_requested": "{operator_id} says {decision} to {proposal_id} {reason}",
    "pla.disarm_requested": "{operator_id} wants the device disarmed {reason}",
    "pla.end_requested": "{operator_id} ends the session",
    "pla.executed": "{execution_id} {outcome}: {why} ({code})",
    "pla.execution_requested": _to_execute,
    "pla.frame_failed": "no frame: {text} ({code})",
    "pla.frame_observed": "{name}, {width} x {height}: {ocr_text}",
    "pla.frame_requested": "take the newest frame of {source.path}",
    "pla.mode_answered": "accepted {accepted}, mode {mode}; reasons: {reasons}",
    "pla.mode_changed": "{previous} → {mode} by {who}: {why} ({code})",
    "pla.mode_requested": "{operator_id} wants {mode} {reason}",
    "pla.observe_requested": "{requested_by} wants a look at {frame.path}",
    "pla.observed": "frame {frame}; reasons: {reasons}",
    "pla.proposal_closed": "{proposal_id} {outcome} {why}",
    "pla.proposal_refused": "no proposal: {reasons} ({code})",
    "pla.proposal_requested": "{requested_by} wants: {goal}",
    "pla.proposed": _proposed,
    "pla.rejected": "{operator_id} rejects {proposal_id}: {reason}",
    "pla.revealed": "the plain text of {proposal_id} was shown to {operator_id}",
    "pla.session_began": "{session_id} began in {mode}, by {operator_id}",
    "pla.session_ended": "{session_id} {state}: {reason}",
    "pla.violation": "VIOLATION {kind} of {contract}: {text}; {handling}",
}

LINES: Final[dict[str, Line]] = {type: partial(_told, made) for type, made in _LINES.items()}
