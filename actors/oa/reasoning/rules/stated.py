"""The commands that a goal or its context states literally; pure. Nothing else is ever taken for a command."""

from __future__ import annotations

import re
from typing import Any

from pmagent.actors.oa.reasoning.rules.commands import writable
from pmagent.actors.oa.reasoning.rules.facts import listing
from pmagent.actors.oa.reasoning.rules.text import quoted

_STATED = re.compile(r"```(?:[A-Za-z]+\n)?(.*?)```|`([^`\n]+)`", re.DOTALL)
_PROGRAM_NAME = re.compile(r"(?:\S*/)?[a-z0-9_][a-z0-9_.+-]*|[A-Z][A-Z0-9_]*=\S*")
_CALLED = re.compile(r"\b(?:run|execute|invoke|call)\s+$", re.IGNORECASE)


def stated(goal: str, context: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The commands that goal and context state literally, in order, and what is wrong with the rest.

    In a goal they stand in backquotes; what begins with no program's name there, or is one word that nobody says to
    run, is a quotation of something else.
    """
    commands: list[str] = []
    flaws: list[str] = []
    for match in _STATED.finditer(goal):
        for line in (match[1] or match[2] or "").splitlines():
            text = line.strip().removeprefix("$ ")
            called = " " in text or _CALLED.search(goal[max(0, match.start() - 40) : match.start()])
            if text and called and _PROGRAM_NAME.fullmatch(text.split()[0]):
                commands.append(text)
    sources = [("oa_context.commands", context.get("commands"))]
    pending = context.get("pending_ops_blocks")
    if pending is not None and not isinstance(pending, list):
        flaws.append(f"oa_context.pending_ops_blocks is {quoted(pending)}, not a list")
    for number, entry in enumerate(listing(pending)):
        if isinstance(entry, dict):
            sources.append((f"oa_context.pending_ops_blocks[{number}].commands", entry.get("commands")))
    for where, given in sources:
        if given is not None and not isinstance(given, list):
            flaws.append(f"{where} is {quoted(given)}, not a list of commands")
        for number, command in enumerate(listing(given)):
            if isinstance(command, str) and writable(command.strip()):
                commands.append(command.strip())
            else:
                flaws.append(f"{where}[{number}] is {quoted(command)}, not one line that can be run")
    writables = [command for command in commands if writable(command)]
    return list(dict.fromkeys(writables)), flaws


def without_commands(goal: str) -> str:
    """The goal's prose: what its backquotes hold is left out."""
    return _STATED.sub(" ", goal)
