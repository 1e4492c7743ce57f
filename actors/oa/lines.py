"""The OA's events, each in one line, and its alerts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pmagent.actors.core.alerts import Alert, Judged, Judges, Over, reasons
from pmagent.actors.core.lines import Line, at_path, shown
from pmagent.events.event import Event

if TYPE_CHECKING:
    from pmagent.contracts.control import Severity


def _snapshot_taken(data: dict[str, Any]) -> str:
    taken = "snapshot taken" if data.get("success") is True else "snapshot refused"
    reasons = data.get("reasons")
    return f"{taken}, {shown(data.get('mode'))}" + (f": {shown(reasons)}" if reasons else "")


def _escalated(data: dict[str, Any]) -> str:
    text = f"{shown(data.get('severity'))}: {shown(data.get('kind'))}"
    if data.get("session_id"):
        text += f" {shown(data['session_id'])}: {shown(data.get('boot_mode'))} → {shown(data.get('current_mode'))}"
    reasons = data.get("reasons")
    return text + (f": {shown(reasons)}" if reasons else "")


def _tool_requested(data: dict[str, Any]) -> str:
    args = data.get("args")
    return f"{shown(data.get('tool_id'))} for run {shown(data.get('run'))}" + (
        f": {', '.join(f'{name}={shown(value)}' for name, value in args.items())}"
        if isinstance(args, dict) and args else ""
    )


def _concluded(data: dict[str, Any]) -> str:
    decision = at_path(data, "result.decision")
    verdict = decision if isinstance(decision, dict) else {}
    text = next((verdict[key] for key in _VERDICTS if key in verdict), None)
    by = data.get("engine")
    return f"{shown(at_path(data, 'result.program_id'))} {shown(at_path(data, 'result.status'))}: {shown(text)}" + (
        f", by {shown(by)}" if by else ""
    )


_VERDICTS: Final = ("allowed_action", "transition_status", "root_cause", "ops_block")
"""The fields of programs' payloads that hold the answer in short."""


LINES: Final[dict[str, Line]] = {
    "oa.boot_refused": "{session_id} refused, {mode}: {reasons}",
    "oa.boot_requested": "boot {session_id}",
    "oa.context_answered": "answer to {request}: success {success} {error}",
    "oa.context_requested": "context wanted: {context.active_goal}",
    "oa.context_unwritten": "{reason}",
    "oa.context_write_requested": "write the context of {request}",
    "oa.context_written": "{path} written, {size} bytes, sha256 {sha256}",
    "oa.escalated": _escalated,
    "oa.permit_granted": "{action} on {subject} for {holder}, {uses} use(s), until {expires_at}",
    "oa.permit_refused": "{action} on {subject}: {reasons}",
    "oa.permit_release_refused": "permit {permit}: {reasons}",
    "oa.permit_release_requested": "permit {permit} by {holder}",
    "oa.permit_released": "permit {permit}",
    "oa.permit_requested": "{action} on {subject} for {holder}",
    "oa.permit_revoked": "permit {permit}: {reason}",
    "oa.session_booted": "{session_id} booted, {mode}, phase {phase}, branch {branch}",
    "oa.session_ended": "{session_id}: {reason}",
    "oa.snapshot_requested": "snapshot wanted",
    "oa.snapshot_taken": _snapshot_taken,
    "oa.tool_failed": "{tool_id}: {error}",
    "oa.tool_refused": "{tool} was not called: {reason}",
    "oa.tool_requested": _tool_requested,
    "oa.tool_returned": "{tool_id} answered",
    "reasoning.concluded": _concluded,
    "reasoning.refused": "{envelope_id}: {reasons}",
    "reasoning.requested": "{envelope.program_id} by {engine}: {envelope.goal}",
}


def _escalation(event: Event) -> Iterator[Judged]:
    """Of the modes, the kernel's own alerts tell."""
    data = event.data
    if data.kind == "guard_failure":
        severity: Severity = "bad" if data.severity == "block" else "warn"
        yield Alert(kind="guard_failed", severity=severity, title="A guard failed", detail=reasons(data.reasons))
    elif data.session_id and data.current_mode != data.boot_mode:
        detail = f"{data.session_id}: booted in {data.boot_mode}, now {data.current_mode}"
        title = "The mode of an OA session has changed"
        yield Alert(kind="mode_drift", severity="warn", title=title, subject=data.session_id, detail=detail)


def _session_over(event: Event) -> Iterator[Judged]:
    yield Over("mode_drift", event.data.session_id)


ALERTS: Final[Judges] = {"oa.escalated": _escalation, "oa.session_ended": _session_over}
