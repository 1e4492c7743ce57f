"""The gateway's events, each in one line."""

from __future__ import annotations

from typing import Any, Final

from pmagent.actors.core.lines import Line, at_path, shown


def _asked(data: dict[str, Any]) -> str:
    named = data.get("program") or at_path(data, "answer.name")
    return f"{shown(data.get('engine'))} {shown(data.get('model'))}" + (f" for {shown(named)}" if named else "")


def _replied(data: dict[str, Any]) -> str:
    calls = data.get("tool_calls")
    wants = [shown(call.get("name")) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    content = f"asks for {shown(wants)}" if wants else shown(data.get("content"))
    used = f"{shown(at_path(data, 'usage.input_tokens'))}+{shown(at_path(data, 'usage.output_tokens'))} tokens"
    return f"{used}, {shown(data.get('latency_ms'))} ms: {content}"


LINES: Final[dict[str, Line]] = {
    "model.asked": _asked,
    "model.call_failed": "{code} after {latency_ms} ms ({error})",
    "model.call_requested": "call {attempt} of {model} for question {ask}, at most {seconds} s",
    "model.failed": "no reply to question {ask} after {attempts} attempt(s): {text} ({code})",
    "model.replied": _replied,
    "model.withdrawn": "question {ask} is taken back",
}
