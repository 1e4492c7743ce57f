"""What a goal asks of pmagent itself, as the commands that do it; pure, by general vocabulary."""

from __future__ import annotations

from pmagent.actors.oa.reasoning.rules.text import asserted, stem, stems, words

GUARD_NAMES = (
    "oa_state",
    "bootstrap_consistency",
    "handoff_kernel",
    "dms_alignment",
    "surface_schema",
    "oa_tools",
    "reasoning_bridge",
    "log_integrity",
    "projections",
)
"""The guards there are. (Their table belongs to the tools; a test holds the two together.)"""

DEFAULT_GUARD = "oa_state"

_GUARD = stems("guard")
_RUN = stems("run rerun execute exercise repeat check verify call")
_RENEW = stems("refresh regenerate recompute renew rewrite update recalculate")
_SURFACES = stems("surface kernel reality bootstrap summary summaries ssot share")

_INTENTS: tuple[tuple[frozenset[str], frozenset[str], str], ...] = (
    (_RENEW, _SURFACES, "pmagent kernel refresh"),
    (stems("snapshot"), stems("snapshot"), "pmagent oa snapshot"),
    (stems("verify check verification validate"), stems("log"), "pmagent log verify"),
    (stems("rebuild regenerate rewrite"), stems("document projection"), "pmagent rebuild"),
    (stems("replay"), stems("replay"), "pmagent replay"),
    (stems("diagnose doctor examine check"), stems("installation setting doctor"), "pmagent doctor"),
    (stems("boot"), stems("session oa"), "pmagent boot oa"),
)
"""Verbs, what they act on, command: it is meant where the goal says one of each."""


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
    plain = asserted(goal, _RENEW | _RUN)
    said = frozenset(stem(word) for word in plain)
    commands = [command for verbs, things, command in _INTENTS if said & verbs and said & things]
    if said & _GUARD:
        commands += _guards(plain, "HINT" if "hint" in plain else "STRICT")
    return list(dict.fromkeys(commands))


def _guards(said: list[str], mode: str) -> list[str]:
    """The guards that are named; all that the default runs, where it is only said that guards run."""
    text = " ".join(said)
    named = [name for name in GUARD_NAMES if " ".join(words(name)) in text]
    if not named and not {stem(word) for word in said} & _RUN:
        return []
    return [guard_command(name, mode) for name in named or [DEFAULT_GUARD]]
