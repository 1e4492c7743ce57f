"""Guards on STATE.json's own blocks: oa_tools and reasoning_bridge agree with what this program has."""

from __future__ import annotations

from typing import Any

from pmagent.actors.kernel.coherence import compared
from pmagent.contracts.reasoning import PROGRAM_IDS, PROGRAM_TOOLS, TOOL_IDS
from pmagent.oa.guards.reading import STATE_PATH, Given
from pmagent.oa.guards.report import SNAPSHOT, Findings

CODE = "contracts/reasoning.py"
"""Where the ids stand that the blocks are compared with."""


def oa_tools(given: Given) -> Findings:
    """The tools that STATE.json lists are exactly the registry's."""
    return _block(given, "oa_tools", "tools", list(TOOL_IDS))


def reasoning_bridge(given: Given) -> Findings:
    """The programs that STATE.json lists are exactly the contract's, and use no tool that does not exist."""
    found = _block(given, "reasoning_bridge", "programs", list(PROGRAM_IDS))
    unknown = {program: sorted(set(tools) - set(TOOL_IDS)) for program, tools in PROGRAM_TOOLS.items()}
    found.failed = any(unknown.values())
    return found


def _block(given: Given, block: str, key: str, expected: list[str]) -> Findings:
    found = Findings()
    if given.state is None:
        found.lacks(STATE_PATH, given.state_fault, SNAPSHOT)
        return found
    said: Any = given.state.get(block)
    actual = said.get(key) if isinstance(said, dict) else None
    found.disagree(compared(f"{block}.{key}", expected, actual, CODE, STATE_PATH), "config_drift", SNAPSHOT)
    return found
