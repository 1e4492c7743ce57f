"""Calls of opencode, as the plugin that ``pmagent connect`` writes tells of them: it has no hooks of its own.

Source: https://opencode.ai/docs/plugins, and the program itself, version 1.18.33. An error of the plugin keeps the tool
from running.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pmagent.contracts.guest_calls import Answer
from pmagent.guests.dialects import SILENT, Asked, Ended, Finished, Heard, Printed, Started, Unheard, refusal
from pmagent.guests.dialects.claude import given, named


class Payload(msgspec.Struct, frozen=True, rename={"session": "sessionID", "call": "callID"}):
    """The plugin's message."""

    session: str
    call: str = ""
    tool: str = ""
    args: Any = None
    output: Any = None
    cwd: str = ""
    agent: str = ""
    version: str = ""
    exit: int = 0


def read(event: str, payload: Mapping[str, Any]) -> Heard:
    """The event in neutral shape. Raises msgspec.ValidationError for a payload of another form."""
    data = msgspec.convert(payload, Payload)
    if event == "session.created":
        return Started(session=data.session, cwd=data.cwd, version=data.version, source="startup")
    if event == "session.ended":
        return Ended(session=data.session, reason="exit", cwd=data.cwd)
    tool = named(data.tool)
    if event == "tool.execute.before":
        return Asked(
            session=data.session, tool=tool, tool_input=given(data.args), call=data.call, agent=data.agent, cwd=data.cwd
        )
    if event == "tool.execute.after":
        return Finished(
            session=data.session, tool=tool, ok=data.exit == 0, call=data.call, agent=data.agent, output=data.output,
            cwd=data.cwd,
        )  # fmt: skip
    return Unheard(why=f"{event} is no event that pmagent asks for")


def answer(event: str, answer: Answer, reason: str) -> Printed:
    """The plugin throws what stands on stderr, unless the exit code is 0."""
    return SILENT if answer == "allow" else refusal(reason)
