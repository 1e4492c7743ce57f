"""An event in one line: templates and functions, which each area has for its own types.

They work on decoded JSON, never fail, and look only at the beginning of long content: the log holds hostile text, and
types of other versions. A line is not yet clean; the writer sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

TEXT_MAX: Final = 600
_DEPTH_MAX: Final = 8
"""Lists and objects within each other: JSON may be nested deeper than any program recurses."""
_HOLE: Final = re.compile(r"\{([a-z0-9_.]+)\}")

Line = str | Callable[[dict[str, Any]], str]
"""A template whose holes name fields (``{result.task_id}``), or a function of the payload."""


def line(made: Line, data: dict[str, Any]) -> str:
    """``made``, filled with ``data``; bounded in length."""
    if callable(made):
        return made(data)[:TEXT_MAX]
    return _HOLE.sub(lambda hole: shown(at_path(data, hole[1])), made)[:TEXT_MAX].rstrip()


def at_path(data: Any, path: str) -> Any:
    """The value at ``a.b.0`` in decoded JSON; None where there is nothing."""
    for part in path.split("."):
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and part.isdigit() and int(part) < len(data):
            data = data[int(part)]
        else:
            return None
    return data


def shown(value: Any, depth: int = _DEPTH_MAX) -> str:
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
        return ("; ".join(shown(item, depth - 1) for item in value[:3]) or "none") + more
    if isinstance(value, dict):
        text = next((value[key] for key in ("text", "message", "name") if key in value), None)
        return shown(text, depth - 1) if text is not None else "{" + ", ".join(map(str, list(value)[:4])) + "}"
    return str(value)[:TEXT_MAX]


def count(listed: Any) -> int:
    """How many there are; 0 of what is no list."""
    return len(listed) if isinstance(listed, list) else 0


def exited(data: dict[str, Any]) -> str:
    """The end of a tool, and its last line of output."""
    code, signal = data.get("exit_code"), data.get("signal")
    how = f"exit {shown(code)}" if code is not None else f"signal {shown(signal)}"
    late = ", timed out" if data.get("timed_out") is True else ""
    over = f", {shown(data['exceeded'])}" if data.get("exceeded") else ""
    bad = f"; VIOLATION: {shown(data['violations'])}" if data.get("violations") else ""
    lines = data.get("last_lines")
    last = f": {shown(lines[-1])}" if isinstance(lines, list) and lines else ""
    refused = f", the proxy refused: {shown(data['refusals'])}" if data.get("refusals") else ""
    return f"{how}{late}{over}{refused} after {shown(data.get('duration_ms'))} ms{bad}{last}"
