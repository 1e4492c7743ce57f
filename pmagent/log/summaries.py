"""What an event says, in one line: by its type where that is known, else its first fields.

Works on the stored JSON, never fails, and looks only at the beginning of long content: the log holds hostile text, and
types of other versions. What it returns is not yet clean; the writer sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from events.event import StoredEvent
from pmagent.when import sized

TEXT_MAX: Final = 600
_FIELDS_MAX: Final = 8
_DEPTH_MAX: Final = 8
"""Lists and objects within each other: JSON may be nested deeper than any program recurses."""
_HOLE: Final = re.compile(r"\{([a-z0-9_.]+)\}")

_TEMPLATES: Final[dict[str, str]] = {
    "actor.halted": "{name} halted on event {input}: {error} in {place}",
    "actor.resumed": "{name} may decide again",
    "audit.cancel_answered": "accepted {accepted} {text}",
    "audit.cancel_requested": "cancel {audit_id}: {reason}",
    "audit.clone_requested": "clone and survey {repo_url}",
    "audit.concluded": "{overall_score} of 5: {executive_summary}",
    "audit.failed": "{code}: {reasons}",
    "audit.opinion_rejected": "{judge} on {criterion_id}, answer {attempt} is no opinion: {objection}",
    "audit.pdf_requested": "read {pdf_path}",
    "audit.pictures_requested": "take the images out of {pdf_path}",
    "audit.requested": "{repo_url} and {pdf_path}, judged by {engine} {model}",
    "audit.source_failed": "{code}: {text}",
    "check.answered": "answer to {request}: {results}",
    "check.requested": "{kind}s wanted: {checks}",
    "check.run_requested": "run {kind} {name}: {argv}",
    "check.unstarted": "not started: {text}",
    "console.checked": "{operator_id} had the {what} checked: exit code {exit_code}",
    "console.signed_in": "{operator_id} signed in by {by}",
    "console.signed_out": "{operator_id} signed out",
    "control.pause_requested": "{operator_id} pauses effects {reason}",
    "control.paused": "effects are paused by {operator_id} since {since} {reason}",
    "control.resume_requested": "{operator_id} resumes effects {reason}",
    "control.log_adopted": "{operator_id} adopts the log in {folder}, and what is open in it ends {previous}",
    "control.resumed": "effects start again, {held} were held; paused since {since}",
    "daemon.started": "pmagent {version} ({surface}), Python {python}",
    "daemon.stopped": "{reason}",
    "effect.cancelled": "effect {request} cancelled: {reason}",
    "effect.cancel_requested": "effect {request} is to be cancelled",
    "effect.failed": "effect {request} failed: {error} in {place}",
    "effect.interrupted": "effect {request} cut off ({reason}), outcome unknown",
    "effect.refused": "effect {request} refused: {reasons}",
    "effect.timed_out": "effect {request} stopped after {limit_s} s",
    "hid.arm_requested": "arm {device_id}",
    "hid.armed": "armed, for {lease_ms} ms at a time",
    "hid.commit_requested": "carry out {execution_id}, once",
    "hid.disarm_requested": "disarm: {why}",
    "hid.disarmed": "disarmed",
    "hid.ended": "{execution_id} {state}: {done} of {of} reports sent {code}",
    "hid.linked": "{device_id} at {port}, contract {contract_version}, switch {kill_switch_state} {text}",
    "hid.lost": "{code}: {text}",
    "hid.outcome_unknown": "OUTCOME UNKNOWN of {execution_id}, at most {of} reports: {why}",
    "hid.ping_requested": "renew the lease",
    "hid.pinged": "armed {armed}, switch {kill_switch_state}",
    "hid.prepared": "{execution_id} is prepared: {of} reports",
    "hid.refused": "the device refused: {text} ({code})",
    "hid.reported": "{mode}, light {led_state}, switch {kill_switch_state}, error {error_code}",
    "hid.silent": "no answer ({code}), sent {sent}: {text}",
    "hid.status_requested": "ask what became of {execution_id}",
    "hid.told": "{execution_id} is {state}, {done} of {of} reports sent {code}",
    "hid.tripped": "{code}: {text}",
    "kernel.read_requested": "read the surfaces: {why}",
    "log.created": "log {log_id}",
    "log.recovered": "{cut_bytes} torn bytes cut from {segment}, kept as {kept_as}: {reason}",
    "oa.boot_refused": "{session_id} refused, {mode}: {reasons}",
    "oa.boot_requested": "boot {session_id}",
    "oa.context_answered": "answer to {request}: success {success} {error}",
    "oa.context_requested": "context wanted: {context.active_goal}",
    "oa.context_unwritten": "{reason}",
    "oa.context_write_requested": "write the context of {request}",
    "oa.context_written": "{path} written, {size} bytes, sha256 {sha256}",
    "model.call_failed": "{code} after {latency_ms} ms ({error})",
    "model.call_requested": "call {attempt} of {model} for question {ask}, at most {seconds} s",
    "model.failed": "no reply to question {ask} after {attempts} attempt(s): {text} ({code})",
    "model.withdrawn": "question {ask} is taken back",
    "oa.permit_granted": "{action} on {subject} for {holder}, {uses} use(s), until {expires_at}",
    "oa.permit_refused": "{action} on {subject}: {reasons}",
    "oa.permit_requested": "{action} on {subject} for {holder}",
    "oa.permit_revoked": "permit {permit}: {reason}",
    "oa.session_booted": "{session_id} booted, {mode}, phase {phase}, branch {branch}",
    "oa.session_ended": "{session_id}: {reason}",
    "oa.snapshot_requested": "snapshot wanted",
    "oa.tool_failed": "{tool_id}: {error}",
    "oa.tool_refused": "{tool} was not called: {reason}",
    "oa.tool_returned": "{tool_id} answered",
    "reasoning.refused": "{envelope_id}: {reasons}",
    "reasoning.requested": "{envelope.program_id} by {engine}: {envelope.goal}",
    "pla.approved": "{operator_id} approves {proposal_id}, to be executed {executes}, until {expires_at}",
    "pla.arm_answered": "accepted {accepted}, armed {armed}; reasons: {reasons}",
    "pla.arm_requested": "{operator_id} wants the device armed",
    "pla.contract_broken": "{by} got no {contract}: {text} at {pointer}",
    "pla.decision_refused": "decision on {proposal_id} refused: {reasons} ({code})",
    "pla.decision_requested": "{operator_id} says {decision} to {proposal_id} {reason}",
    "pla.disarm_requested": "{operator_id} wants the device disarmed {reason}",
    "pla.end_requested": "{operator_id} ends the session",
    "pla.executed": "{execution_id} {outcome}: {why} ({code})",
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
    "pla.rejected": "{operator_id} rejects {proposal_id}: {reason}",
    "pla.revealed": "the plain text of {proposal_id} was shown to {operator_id}",
    "pla.session_began": "{session_id} began in {mode}, by {operator_id}",
    "pla.session_ended": "{session_id} {state}: {reason}",
    "pla.violation": "VIOLATION {kind} of {contract}: {text}; {handling}",
    "plan.failed": "no plan ({code}): {reasons}",
    "plan.finished": "all tasks have ended: {done} done, {failed} failed",
    "plan.made": "{tasks} tasks planned, {kept} kept, at most {attempts} attempts",
    "plan.requested": "plan wanted, revision {revision}",
    "planner.call_requested": "ask {model} for a plan, attempt {attempt}, at most {seconds} s",
    "planner.failed": "no plan ({code}) after {duration_ms} ms: {text}",
    "planner.replied": "{model} answered after {duration_ms} ms, {tokens} tokens: {text}",
    "request.refused": "request {request}: {name} is {reason}",
    "run.begun": "the plan runs under permit {permit}",
    "run.cancel_answered": "accepted {accepted} {text}",
    "run.cancel_requested": "cancel {run_id}: {reason}",
    "run.ended": "{state}: {done} done, {failed} failed; {reasons}",
    "run.refused": "{code}: {reasons}",
    "run.requested": "{action}: {intent}",
    "run.stopping": "{cause}: {reasons}",
    "task.assigned": "{name} to worker {worker}: {assignment.tools.0} {assignment.inputs.args}",
    "task.attempt_failed": "attempt {attempt} of {task_id}: {reason}; next: {retry_at}",
    "task.attempt_requested": "attempt {attempt} of {task_id}, at most {seconds} s",
    "task.unstarted": "attempt {attempt} of {task_id} was not started: {reason}",
    "timer.fired": "timer {request} {name}",
    "timer.requested": "at {at} {name}",
}


def summary(event: StoredEvent) -> str:
    """The line for ``event``; unclean, bounded in length."""
    data = _decoded(event.data)
    if not isinstance(data, dict):
        return _shown(data)
    blob = data.get("blob")
    if len(data) == 1 and isinstance(blob, dict):
        return _blob(blob)
    made = _MADE.get(event.type)
    if made is not None:
        return made(data)[:TEXT_MAX]
    template = _TEMPLATES.get(event.type)
    if template is not None:
        return _HOLE.sub(lambda hole: _shown(at_path(data, hole[1])), template)[:TEXT_MAX].rstrip()
    return "  ".join(f"{name}={_shown(value)}" for name, value in list(data.items())[:_FIELDS_MAX])[:TEXT_MAX]


def at_path(data: Any, path: str) -> Any:
    """What stands at ``a.b.0`` in decoded JSON; None where there is nothing."""
    for part in path.split("."):
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and part.isdigit() and int(part) < len(data):
            data = data[int(part)]
        else:
            return None
    return data


def _decoded(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return bytes(memoryview(raw)[:TEXT_MAX]).decode("utf-8", "replace")


def _shown(value: Any, depth: int = _DEPTH_MAX) -> str:
    """A value in short: text as it is, lists by their first elements, reasons by their text; what lies too deep left
    out."""
    if depth == 0 and isinstance(value, list | dict):
        return "…"
    if isinstance(value, str):
        return value[:TEXT_MAX]
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        more = f" … ({len(value)})" if len(value) > 3 else ""
        return ("; ".join(_shown(item, depth - 1) for item in value[:3]) or "none") + more
    if isinstance(value, dict):
        said = next((value[key] for key in ("text", "message", "name") if key in value), None)
        return _shown(said, depth - 1) if said is not None else "{" + ", ".join(map(str, list(value)[:4])) + "}"
    return str(value)[:TEXT_MAX]


def _blob(blob: dict[str, Any]) -> str:
    size = blob.get("size")
    shown = sized(size) if isinstance(size, int) and abs(size) < 1 << 62 else "?"
    return f"{shown} of {_shown(blob.get('media_type'))} in blob {_shown(blob.get('sha256'))[:12]}"


def _mode_decided(data: dict[str, Any]) -> str:
    was = data.get("previous")
    now = _shown(data.get("mode"))
    change = f"{_shown(was)} → {now}" if was and was != data.get("mode") else now
    reasons = data.get("reasons")
    return f"{change}: {_shown(reasons)}" if reasons else change


def _observed(data: dict[str, Any]) -> str:
    listed = data.get("surfaces")
    surfaces = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    bad = [f"{_shown(one.get('path'))} {_shown(one.get('status'))}" for one in surfaces if one.get("status") != "ok"]
    return f"{len(surfaces) - len(bad)} of {len(surfaces)} surfaces ok" + (f"; {_shown(bad)}" if bad else "")


def _snapshot_taken(data: dict[str, Any]) -> str:
    taken = "snapshot taken" if data.get("success") is True else "snapshot refused"
    reasons = data.get("reasons")
    return f"{taken}, {_shown(data.get('mode'))}" + (f": {_shown(reasons)}" if reasons else "")


def _escalated(data: dict[str, Any]) -> str:
    said = f"{_shown(data.get('severity'))}: {_shown(data.get('kind'))}"
    if data.get("session_id"):
        said += f" {_shown(data['session_id'])}: {_shown(data.get('boot_mode'))} → {_shown(data.get('current_mode'))}"
    reasons = data.get("reasons")
    return said + (f": {_shown(reasons)}" if reasons else "")


def _asked(data: dict[str, Any]) -> str:
    named = data.get("program") or at_path(data, "answer.name")
    return f"{_shown(data.get('engine'))} {_shown(data.get('model'))}" + (f" for {_shown(named)}" if named else "")


def _replied(data: dict[str, Any]) -> str:
    calls = data.get("tool_calls")
    wants = [_shown(call.get("name")) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    said = f"asks for {_shown(wants)}" if wants else _shown(data.get("content"))
    used = f"{_shown(at_path(data, 'usage.input_tokens'))}+{_shown(at_path(data, 'usage.output_tokens'))} tokens"
    return f"{used}, {_shown(data.get('latency_ms'))} ms: {said}"


def _tool_requested(data: dict[str, Any]) -> str:
    args = data.get("args")
    return f"{_shown(data.get('tool_id'))} for run {_shown(data.get('run'))}" + (
        f": {', '.join(f'{name}={_shown(value)}' for name, value in args.items())}"
        if isinstance(args, dict) and args else ""
    )


def _concluded(data: dict[str, Any]) -> str:
    decision = at_path(data, "result.decision")
    verdict = decision if isinstance(decision, dict) else {}
    said = next((verdict[key] for key in _VERDICTS if key in verdict), None)
    by = data.get("engine")
    return f"{_shown(at_path(data, 'result.program_id'))} {_shown(at_path(data, 'result.status'))}: {_shown(said)}" + (
        f", by {_shown(by)}" if by else ""
    )


def _exited(data: dict[str, Any]) -> str:
    code, signal = data.get("exit_code"), data.get("signal")
    how = f"exit {_shown(code)}" if code is not None else f"signal {_shown(signal)}"
    late = ", timed out" if data.get("timed_out") is True else ""
    over = f", {_shown(data['exceeded'])}" if data.get("exceeded") else ""
    bad = f"; VIOLATION: {_shown(data['violations'])}" if data.get("violations") else ""
    lines = data.get("last_lines")
    said = f": {_shown(lines[-1])}" if isinstance(lines, list) and lines else ""
    return f"{how}{late}{over} after {_shown(data.get('duration_ms'))} ms{bad}{said}"


def _task_finished(data: dict[str, Any]) -> str:
    why = f": {_shown(data['reason'])}" if data.get("reason") else ""
    task = at_path(data, "result.task_id")
    return f"{_shown(task)} {_shown(at_path(data, 'result.state'))}, {_shown(data.get('attempts'))} attempt(s){why}"


def _tasks_planned(data: dict[str, Any]) -> str:
    listed = data.get("tasks")
    names = [at_path(task, "name") for task in listed] if isinstance(listed, list) else []
    return f"{len(names)} tasks: {_shown(names)}"


def _tasks_changed(data: dict[str, Any]) -> str:
    listed = data.get("changes")
    changes = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return _shown([f"{_shown(one.get('task_id'))[:8]} {_shown(one.get('state'))}" for one in changes])


def _surveyed(data: dict[str, Any]) -> str:
    survey = data.get("survey")
    commit, files = _shown(at_path(survey, "commit"))[:12], _shown(at_path(survey, "file_count"))
    commits, graphs = _shown(at_path(survey, "history.total")), at_path(survey, "graphs")
    return f"commit {commit}: {files} files, {commits} commits, {_count(graphs)} graphs"


def _pdf_read(data: dict[str, Any]) -> str:
    claims = _count(at_path(data, "reading.claims"))
    return f"{_shown(at_path(data, 'reading.pages'))} pages, {claims} paths named"


def _pictures_read(data: dict[str, Any]) -> str:
    kept = _count(at_path(data, "reading.pictures"))
    return f"{_shown(at_path(data, 'reading.count'))} images, {kept} of them kept"


def _evidence_found(data: dict[str, Any]) -> str:
    listed = data.get("evidences")
    pieces = listed if isinstance(listed, list) else []
    found = [one for one in pieces if isinstance(one, dict) and one.get("found") is True]
    return f"{_shown(data.get('dimension_id'))}: {_count(listed)} pieces, {len(found)} of what is there"


def _opinion_given(data: dict[str, Any]) -> str:
    again = ", second round" if data.get("round") == 2 else ""
    judge, criterion = (_shown(at_path(data, f"opinion.{name}")) for name in ("judge", "criterion_id"))
    said = _shown(at_path(data, "opinion.argument"))
    return f"{judge} on {criterion}: {_shown(at_path(data, 'opinion.score'))}{again}: {said}"


def _criterion_ruled(data: dict[str, Any]) -> str:
    score = data.get("final_score")
    said = f"not judged: {_shown(data.get('reason'))}" if score is None else f"{_shown(score)}"
    return f"{_shown(data.get('dimension_id'))}: {said}"


def _to_type(data: dict[str, Any]) -> str:
    """What is to be typed, by its type and its fields."""
    action = data.get("action")
    fields = action if isinstance(action, dict) else {}
    said = ", ".join(_shown(value) for name, value in fields.items() if name != "action_type")
    masked = " (masked)" if data.get("masked") is True else ""
    return f"{_shown(fields.get('action_type'))} {said}{masked}"


def _proposed(data: dict[str, Any]) -> str:
    warned = ", CREDENTIALS" if data.get("credential_warning") is True else ""
    return f"{_shown(data.get('proposal_id'))}{warned}: {_to_type(data)}"


def _to_execute(data: dict[str, Any]) -> str:
    return f"{_shown(data.get('execution_id'))}: {_to_type(data)}"


def _not_let_in(data: dict[str, Any]) -> str:
    return f"{_shown(data.get('operator_id')) or 'somebody'} was not let in: {_shown(data.get('reason'))}"


def _count(listed: Any) -> int:
    return len(listed) if isinstance(listed, list) else 0


_VERDICTS: Final = ("allowed_action", "transition_status", "root_cause", "ops_block")
"""What of each program's payload is its answer in short."""

_MADE: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "audit.criterion_ruled": _criterion_ruled,
    "audit.evidence_found": _evidence_found,
    "audit.opinion_given": _opinion_given,
    "audit.pdf_read": _pdf_read,
    "audit.pictures_read": _pictures_read,
    "audit.surveyed": _surveyed,
    "check.ran": _exited,
    "console.refused": _not_let_in,
    "hid.prepare_requested": _to_execute,
    "kernel.mode_decided": _mode_decided,
    "kernel.observed": _observed,
    "oa.snapshot_taken": _snapshot_taken,
    "oa.escalated": _escalated,
    "model.asked": _asked,
    "model.replied": _replied,
    "oa.tool_requested": _tool_requested,
    "pla.execution_requested": _to_execute,
    "pla.proposed": _proposed,
    "reasoning.concluded": _concluded,
    "task.exited": _exited,
    "task.finished": _task_finished,
    "tasks.changed": _tasks_changed,
    "tasks.planned": _tasks_planned,
}

KNOWN: Final = frozenset(_TEMPLATES) | frozenset(_MADE)
"""The types that have a line of their own."""
