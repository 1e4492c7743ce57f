"""Cursor's hooks. A refusal is a JSON object, whose text reaches the agent: half of one refuses here, too.

Source: https://cursor.com/docs/hooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pmagent.contracts.guest_calls import Answer
from pmagent.guests.dialects import Asked, Ended, Finished, Heard, Printed, Started, Unheard
from pmagent.guests.dialects.claude import given, named


class Payload(msgspec.Struct, frozen=True):
    """The fields that are used; its user's address, among others, is left alone."""

    conversation_id: str = ""
    session_id: str = ""
    cursor_version: str = ""
    workspace_roots: list[str] = []
    model: str | None = None
    cwd: str | None = None
    reason: str = ""
    tool_name: str = ""
    tool_input: Any = None
    tool_use_id: str = ""
    tool_output: Any = None
    error_message: str = ""
    duration: float | None = None


def read(event: str, payload: Mapping[str, Any]) -> Heard:
    """The event in neutral shape. Raises msgspec.ValidationError for a payload of another form."""
    data = msgspec.convert(payload, Payload)
    session = data.conversation_id or data.session_id
    if not session:
        raise msgspec.ValidationError("no conversation is named")
    cwd = data.cwd or next(iter(data.workspace_roots), "")
    match event:
        case "preToolUse":
            tool = named(data.tool_name)
            return Asked(session=session, tool=tool, tool_input=given(data.tool_input), call=data.tool_use_id, cwd=cwd)
        case "postToolUse" | "postToolUseFailure":
            ok = event == "postToolUse"
            return Finished(
                session=session, tool=named(data.tool_name), ok=ok, call=data.tool_use_id,
                output=data.tool_output if ok else data.error_message, duration_ms=int(data.duration or 0),
                tool_input=given(data.tool_input), cwd=cwd,
            )  # fmt: skip
        case "sessionStart":
            return Started(session=session, cwd=cwd, version=data.cursor_version, model=data.model or "")
        case "sessionEnd":
            return Ended(session=session, reason=data.reason, cwd=cwd)
    return Unheard(why=f"{event} is no event that pmagent asks for")


def answer(event: str, answer: Answer, reason: str) -> Printed:
    """In its own words; the agent and its user are told why."""
    said = {"permission": "allow"}
    if answer != "allow":
        said = {"permission": "deny", "user_message": reason, "agent_message": reason}
    return Printed(0, msgspec.json.encode(said).decode() + "\n", "")
