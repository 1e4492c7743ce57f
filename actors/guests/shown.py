"""A call as people read it: in short, and whole for a decision; and a verdict as its agent does; pure."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any, Final

import msgspec

from pmagent.contracts.guests import GuestCallDecided

SHORT_CHARS: Final = 200
_TELLING: Final = ("command", "cmd", "file_path", "path", "url", "pattern", "query", "prompt")
"""Fields of an input that say most, the first first."""


def in_short(given: Any) -> str:
    """A tool's input in a line."""
    if isinstance(given, dict):
        for name in _TELLING:
            if isinstance(given.get(name), str):
                return _line(given[name])
    return "" if given in (None, {}) else _line(msgspec.json.encode(given).decode())


def _line(text: str) -> str:
    return " ".join(text[: 2 * SHORT_CHARS].split())[:SHORT_CHARS]


def readable(given: Any) -> list[str]:
    """A tool's input, whole, in lines: a command line as it is, an edit as its difference, what is written, the address
    and body of a request; of all else its JSON."""
    if not isinstance(given, dict):
        return msgspec.json.format(msgspec.json.encode(given), indent=2).decode().split("\n")
    return list(_fields(given))


def _fields(given: dict[str, Any]) -> Iterator[str]:
    left = dict(given)
    for name in _TELLING:
        if isinstance(left.get(name), str):
            yield from f"{name}: {left.pop(name)}".split("\n")
    yield from _difference(left)
    for name, value in left.items():
        text = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        yield from f"{name}: {text}".split("\n")


def _difference(left: dict[str, Any]) -> Iterator[str]:
    edits = left.get("edits") if isinstance(left.get("edits"), list) else [left]
    for edit in edits or ():
        if (
            isinstance(edit, dict)
            and isinstance(edit.get("old_string"), str)
            and isinstance(edit.get("new_string"), str)
        ):
            old, new = edit["old_string"].split("\n"), edit["new_string"].split("\n")
            yield from list(unified_diff(old, new, lineterm="", n=3))[2:]
            if edit is left:
                del left["old_string"], left["new_string"]
            else:
                left.pop("edits", None)


def said(decided: GuestCallDecided) -> str:
    """An agent is told why its call passes or not, and what would mend that."""
    if decided.approval:
        return f"pmagent: approved ({decided.approval})"
    why = decided.why or "; ".join(decided.verdict.reasons)
    mend = "" if decided.answer == "allow" or decided.why else "".join(f"; {one}" for one in decided.verdict.mend)
    return f"pmagent: {decided.answer} ({', '.join(decided.verdict.rules)}): {why}{mend}"


def asks(decided: GuestCallDecided, number: int) -> str:
    """An agent is told that its call waits for an operator as request ``number``, why, and how to go on."""
    why = "; ".join(decided.verdict.reasons)
    return (
        f"pmagent: this call waits for an operator as request {number}: {why}. Tell the user: pmagent approvals show "
        f"{number}. Once it is approved, exactly the same call passes, once."
    )
