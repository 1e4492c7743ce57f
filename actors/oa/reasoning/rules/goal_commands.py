"""The commands that a goal asks for: pmagent's own, meant by its words, and those that it or its context states
literally; pure. Nothing else is ever taken for a command."""

from __future__ import annotations

import re
from typing import Any

from pmagent.actors.oa.reasoning.rules.commands import writable
from pmagent.actors.oa.reasoning.rules.facts import listing
from pmagent.actors.oa.reasoning.rules.text import quoted
from pmagent.actors.oa.reasoning.rules.vocabulary import asserted, rows, stem, stems, table, words

GUARD_NAMES = (
    "oa_state", "bootstrap_consistency", "handoff_kernel", "dms_alignment", "surface_schema", "oa_tools",
    "reasoning_bridge", "log_integrity", "projections",
)
"""The guards there are. (Their table belongs to the tools; a test holds the two together.)"""

DEFAULT_GUARD = "oa_state"

_V = table("intents")
_COMMANDS = [(stems(row["verbs"]), stems(row["things"]), str(row["command"])) for row in rows("intents.commands")]


def guard_name(value: object) -> str:
    """The guard's name as the table has it ("OA-State", "reality.green"); "" when ``value`` names none that exists."""
    if not isinstance(value, str):
        return ""
    name = value.strip().lower().replace("-", "_").replace(".", "_")
    return name if name in GUARD_NAMES else ""


def guard_command(name: str, mode: str = "STRICT") -> str:
    """The command that runs a guard."""
    return f"pmagent oa guard --mode {mode}" + (f" --name {name}" if name != DEFAULT_GUARD else "")


def intended(goal: str) -> list[str]:
    """The commands of pmagent that the goal asks for, each once, in a fixed order."""
    plain = asserted(goal, _V.renew | _V.run)
    words = frozenset(stem(word) for word in plain)
    commands = [command for verbs, things, command in _COMMANDS if words & verbs and words & things]
    if words & _V.guard:
        commands += _guards(plain, "HINT" if "hint" in plain else "STRICT")
    return list(dict.fromkeys(commands))


def _guards(stated: list[str], mode: str) -> list[str]:
    """The guards that are named; all that the default runs, where it is only said that guards run."""
    text = " ".join(stated)
    named = [name for name in GUARD_NAMES if " ".join(words(name)) in text]
    if not named and _V.run.isdisjoint(map(stem, stated)):
        return []
    return [guard_command(name, mode) for name in named or [DEFAULT_GUARD]]


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
