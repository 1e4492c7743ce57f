"""Claude Code's hooks, and the dialect that others took over from it.

Source: https://code.claude.com/docs/en/hooks, and the program itself, version 2.1.330.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pmagent.contracts.guest_calls import Answer
from pmagent.guests.dialects import (
    SILENT,
    Asked,
    Changed,
    Ended,
    Finished,
    Heard,
    Printed,
    Spawned,
    Started,
    Stopped,
    Unheard,
    refusal,
)


class Server(msgspec.Struct, frozen=True):
    """The MCP server of a tool."""

    name: str = ""


class Payload(msgspec.Struct, frozen=True):
    """The fields of all events that are used; others are left alone."""

    session_id: str
    cwd: str = ""
    transcript_path: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    model: str | None = None
    source: str = ""
    reason: str = ""
    tool_name: str = ""
    tool_input: Any = None
    tool_use_id: str = ""
    tool_response: Any = None
    error: Any = None
    duration_ms: float | None = None
    mcp_server: Server | None = None
    file_path: str | None = None
    agent_transcript_path: str | None = None


def read(event: str, payload: Mapping[str, Any]) -> Heard:
    """The event in neutral shape. Raises msgspec.ValidationError for a payload of another form."""
    data = msgspec.convert(payload, Payload)
    session, agent, kind = data.session_id, data.agent_id or "", data.agent_type or ""
    transcript = data.transcript_path or ""
    match event:
        case "PreToolUse":
            return Asked(
                session=session, tool=named(data.tool_name), tool_input=given(data.tool_input), call=data.tool_use_id,
                agent=agent, agent_type=kind, server=server(data), cwd=data.cwd, transcript=transcript,
            )  # fmt: skip
        case "PostToolUse" | "PostToolUseFailure":
            failed = event == "PostToolUseFailure"
            return Finished(
                session=session, tool=named(data.tool_name), ok=not failed, call=data.tool_use_id, agent=agent,
                output=data.error if failed else data.tool_response, duration_ms=int(data.duration_ms or 0),
                tool_input=given(data.tool_input), cwd=data.cwd, started=_started(data),
            )  # fmt: skip
        case "SessionStart":
            return Started(
                session=session, cwd=data.cwd, model=data.model or "", source=data.source, transcript=transcript
            )
        case "SessionEnd":
            return Ended(session=session, reason=data.reason, cwd=data.cwd, transcript=transcript)
        case "ConfigChange":
            return Changed(session=session, what=data.source, path=data.file_path or "", cwd=data.cwd)
        case "SubagentStart":
            return Spawned(session=session, agent=agent, agent_type=kind, cwd=data.cwd)
        case "SubagentStop":
            last = data.agent_transcript_path or ""
            return Stopped(session=session, agent=agent, agent_type=kind, cwd=data.cwd, transcript=last)
    return Unheard(why=f"{event} is no event that pmagent asks for")


def answer(event: str, answer: Answer | Literal["defer"], reason: str) -> Printed:
    """An ``allow`` also answers Claude Code's own question; its own rules still deny and ask."""
    if answer not in ("allow", "defer"):
        return refusal(reason)
    if event != "PreToolUse":
        return SILENT
    said = {"hookEventName": event, "permissionDecision": answer, "permissionDecisionReason": reason}
    return Printed(0, msgspec.json.encode({"hookSpecificOutput": said}).decode() + "\n", "")


def given(tool_input: Any) -> dict[str, Any]:
    """A tool's input. Raises msgspec.ValidationError when it is no object."""
    return tool_input if type(tool_input) is dict else msgspec.convert(tool_input, dict[str, Any])


def _started(data: Payload) -> str:
    """The subagent that a call started; "": none, or it is not said."""
    said = data.tool_response.get("agentId") if isinstance(data.tool_response, dict) else None
    return said if data.tool_name in ("Agent", "Task") and isinstance(said, str) else ""


def named(tool: str) -> str:
    """A tool's name. Raises msgspec.ValidationError when there is none."""
    if not tool:
        raise msgspec.ValidationError("no tool is named")
    return tool


def server(data: Payload) -> str:
    """The MCP server of a tool: as the harness tells it, or from the tool's name, ``mcp__server__tool``."""
    if data.mcp_server is not None and data.mcp_server.name:
        return data.mcp_server.name
    first, *rest = data.tool_name.split("__", 2)
    return rest[0] if first == "mcp" and len(rest) == 2 else ""
