"""What a goal asks of pmagent itself, as the commands that do it; pure, by general vocabulary."""

from __future__ import annotations

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
    said = frozenset(stem(word) for word in plain)
    commands = [command for verbs, things, command in _COMMANDS if said & verbs and said & things]
    if said & _V.guard:
        commands += _guards(plain, "HINT" if "hint" in plain else "STRICT")
    return list(dict.fromkeys(commands))


def _guards(said: list[str], mode: str) -> list[str]:
    """The guards that are named; all that the default runs, where it is only said that guards run."""
    text = " ".join(said)
    named = [name for name in GUARD_NAMES if " ".join(words(name)) in text]
    if not named and _V.run.isdisjoint(map(stem, said)):
        return []
    return [guard_command(name, mode) for name in named or [DEFAULT_GUARD]]
