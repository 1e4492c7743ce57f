"""Guests' events, each in one line."""

from __future__ import annotations

from typing import Any, Final

from pmagent.actors.core.lines import Line, at_path, shown


def _asked(data: dict[str, Any]) -> str:
    given = data.get("input")
    said = next(iter(given.values()), "") if isinstance(given, dict) else given
    agent = at_path(data, "facts.agent_type") or at_path(data, "facts.agent")
    who = f"{shown(at_path(data, 'facts.harness'))}{f' ({shown(agent)})' if agent else ''}"
    return f"{who}: {shown(at_path(data, 'facts.tool'))} {shown(said)} [{shown(data.get('mode'))}]"


def _decided(data: dict[str, Any]) -> str:
    why = data.get("why") or at_path(data, "verdict.reasons")
    by = f" by approval {shown(data['approval'])}" if data.get("approval") else ""
    rules = shown(at_path(data, "verdict.rules"))
    return f"{shown(data.get('answer'))} {shown(data.get('request'))}{by} ({rules}): {shown(why)}"


def _changed(data: dict[str, Any]) -> str:
    changes = [one for one in data.get("changes") or () if isinstance(one, dict)]
    said = ", ".join(f"{shown(one.get('kind'))} {shown(one.get('name'))} {shown(one.get('how'))}" for one in changes)
    return f"{'WIDENED: ' if data.get('widens') else ''}{shown(data.get('harness'))}: {said}"


LINES: Final[dict[str, Line]] = {
    "guest.agent_started": "subagent {agent_type} {agent} began",
    "guest.agent_stopped": "subagent {agent_type} {agent} has ended",
    "guest.answer_refused": "the answer to {approval} counts for nothing: {reasons} ({code})",
    "guest.answer_requested": "{operator_id} wants to {decision} {approval} {note}",
    "guest.approval_asked": "{approval} waits for {needed} operator(s) until {expires}: {tool}",
    "guest.approval_expired": "the approval of {approval} expired, given by {given}",
    "guest.approval_given": "{operator_id} approves {approval}, {given} of {needed}, until {expires}",
    "guest.approval_rejected": "{operator_id} rejects {approval} {note}",
    "guest.approval_used": "{call_asked} passes by the approval of {approval}",
    "guest.call_asked": _asked,
    "guest.call_closed": "{call_asked} {end} {why}",
    "guest.call_decided": _decided,
    "guest.call_ended": "{tool} {call} returned, ok {ok}, after {duration_ms} ms",
    "guest.call_unseen": "UNSEEN: {tool} {call} stands in the transcript, and no hook told of it",
    "guest.changed": "{what} changed, refused {refused}: {path}",
    "guest.definitions_changed": _changed,
    "guest.definitions_read": lambda data: f"{shown(data.get('harness'))} goes by {len(data.get('definitions') or ())} "
    "definitions",
    "guest.end_unmatched": "UNGATED: {tool} {call} returned, and was not let through",
    "guest.noted": "{by}: {text}",
    "guest.policy_edit_accepted": "{operator_id} accepts {sha256} as the {layer} policy, instead of {before}",
    "guest.policy_edit_refused": "the {layer} policy stays as it is: {reasons} ({code})",
    "guest.policy_edit_requested": "{operator_id} wants {sha256} to be the {layer} policy, instead of {before}",
    "guest.policy_read": "policy {policy.digest}",
    "guest.session_closed": "{session} {proof}, {unseen} unseen: {asked} asked, {allowed} allowed, {refused} refused, "
    "{unknown} unknown",
    "guest.session_ended": "{session} ended ({reason}), transcript {transcript}: {calls} calls, {unseen} unseen",
    "guest.session_started": "{harness} {version} began {session} in {cwd} [{mode}]",
    "guest.wall_ended": "wall {wall} ended, exit code {exit_code}, signal {signal} {exceeded}",
    "guest.wall_started": "{operator_id} starts {harness} behind wall {wall} [{mode}]: {program}, hosts {hosts}",
    "guest.wait_ended": "the hook of {call_asked} waits no longer ({why})",
}
