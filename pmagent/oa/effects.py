"""Tools, performed: a run's tool call through the registry, in a thread (docs/design.md §12.6, §12.7).

The reasoner asks only for what an envelope allows; the table of the program is held against the request here once more,
so that nothing but the registry's read-only tools can ever be reached from a run.

A guard that the workspace configures is a program, and needs a permit of its own: only the checker asks for that. The
call fails, and says how the guard is run and its report given to a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import msgspec

from pmagent.actors.core.actor import Io, Performers
from pmagent.contracts.reasoning import PROGRAM_TOOLS
from pmagent.contracts.reasoning_events import OaToolFailed, OaToolRequested, OaToolReturned
from pmagent.events.event import Event
from pmagent.oa import reading
from pmagent.oa.guards.configured import configured
from pmagent.oa.guards.table import GUARDS
from pmagent.workspace.settings_programs import ConfigError, normalized

RESULT_BYTES_MAX: Final = 8 * 1024 * 1024
"""A larger answer of a tool is its failure."""


async def call_tool(event: Event, io: Io) -> OaToolReturned | OaToolFailed:
    """Call the tool on the workspace as it is now."""
    asked: OaToolRequested = event.data

    def call() -> dict[str, Any]:
        return reading.call(asked.tool_id, workspace=io.workspace, **asked.args)

    if asked.tool_id not in PROGRAM_TOOLS[asked.program_id]:
        return _failed(event, f"{asked.program_id} may not use {asked.tool_id}")
    if "workspace" in asked.args:
        return _failed(event, "a tool's workspace is not for a run to choose")
    if asked.tool_id == "oa.guard.run" and await anyio.to_thread.run_sync(_is_configured, io.workspace, asked.args):
        name = normalized(asked.args["name"])
        what = f"{name} is a program of the workspace, and no program is started from a reasoning run"
        return _failed(event, what, f"pmagent oa guard --name {name} | pmagent oa interpret --guard {name}")
    try:
        result = await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
    except reading.OAToolError as error:
        return _failed(event, error.message, error.hint)
    if len(msgspec.json.encode(result)) > RESULT_BYTES_MAX:
        return _failed(event, f"the answer is larger than {RESULT_BYTES_MAX} bytes")
    return OaToolReturned(request=event.position, tool_id=asked.tool_id, result=result)


def _is_configured(workspace: Path, args: dict[str, Any]) -> bool:
    """Whether the guard that is named is none of the built-in ones, and the workspace configures it."""
    name = args.get("name")
    if not isinstance(name, str) or normalized(name) in GUARDS:
        return False
    try:
        return normalized(name) in configured(workspace)
    except ConfigError:
        return False  # the tool says what is wrong with the settings


def _failed(event: Event, error: str, hint: str = "") -> OaToolFailed:
    return OaToolFailed(request=event.position, tool_id=event.data.tool_id, error=error, hint=hint)


PERFORMERS: Final[Performers] = {OaToolRequested: call_tool}
