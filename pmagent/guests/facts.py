"""What a verdict depends on, looked up once."""

from __future__ import annotations

import os
from typing import Any

from pmagent.contracts.guest_calls import Call, Command, Harness, Kind

_KINDS: dict[str, Kind] = {"Bash": "shell", "Read": "read", "Write": "write", "Edit": "edit", "WebFetch": "fetch"}


def look(
    harness: Harness, session: str, agent: str, agent_type: str, tool: str, tool_input: dict[str, Any], server: str,
    cwd: str, root: str,
) -> Call:  # fmt: skip
    """The call, with what the machine says of it."""
    kind = _KINDS.get(tool, "mcp" if server else "other")
    path = tool_input.get("file_path")
    paths = [os.path.realpath(os.path.join(cwd or root, path))] if isinstance(path, str) else []
    words = str(tool_input.get("command", "")).split()
    return Call(
        harness=harness, session=session, tool=tool, kind=kind, agent=agent, agent_type=agent_type, server=server,
        cwd=cwd, root=root, commands=[Command(words=list(words))] if words else [],
        reads=paths if kind == "read" else [], writes=paths if kind in ("write", "edit") else [],
    )  # fmt: skip
