"""Gemini CLI's hooks: Claude Code's dialect with other names, and no ids of calls.

Source: https://geminicli.com/docs/hooks/reference, and the program itself, version 0.61.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pmagent.contracts.guest_calls import Answer
from pmagent.guests.dialects import SILENT, Finished, Heard, Printed, claude, refusal

_NAMES: Final = {"BeforeTool": "PreToolUse", "AfterTool": "PostToolUse"}
_FAILED: Final = "Command exited with code: "
"""How the shell's result begins when its line failed."""


def read(event: str, payload: Mapping[str, Any]) -> Heard:
    """The event in neutral shape. Raises msgspec.ValidationError for a payload of another form."""
    context = payload.get("mcp_context")
    if isinstance(context, Mapping) and "server_name" in context:
        payload = {**payload, "mcp_server": {"name": context["server_name"]}}
    heard = claude.read(_NAMES.get(event, event), payload)
    if isinstance(heard, Finished) and isinstance(heard.output, Mapping):
        failed = heard.output.get("error") or str(heard.output.get("returnDisplay")).startswith(_FAILED)
        return msgspec.structs.replace(heard, ok=not failed)
    return heard


def answer(event: str, answer: Answer, reason: str) -> Printed:
    """Silence consents; Gemini CLI's own policy goes on holding."""
    return SILENT if answer == "allow" else refusal(reason)
