"""Guards on STATE.json: oa_state (it, REALITY_GREEN and the bootstrap say the same), and oa_tools and reasoning_bridge
(its own blocks agree with what this program has) (docs/design.md §12.5)."""

from __future__ import annotations

from typing import Any

from pmagent.actors.kernel.coherence import BRANCH_CHECK, PHASE_CHECK, REALITY_CHECK, between_surfaces, compared
from pmagent.actors.kernel.surfaces import BOOTSTRAP, CONTEXT, KEY_CHECKS, REALITY, REQUIRED, SSOT
from pmagent.contracts.oa_documents import Mismatch
from pmagent.contracts.reasoning import PROGRAM_IDS, PROGRAM_TOOLS, TOOL_IDS
from pmagent.oa.guards.reading import STATE_PATH, Given
from pmagent.oa.guards.report import REFRESH, SNAPSHOT, Findings

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
    stated: Any = given.state.get(block)
    actual = stated.get(key) if isinstance(stated, dict) else None
    found.disagree(compared(f"{block}.{key}", expected, actual, CODE, STATE_PATH), "config_drift", SNAPSHOT)
    return found


def check(given: Given) -> Findings:
    """Compare STATE.json with the surfaces, and the surfaces with each other."""
    found = Findings()
    if given.without_surfaces:
        found.details = {"kernel_surfaces": "none"}
        return found
    found.disagree(_against_state(given), "kernel_mismatch", SNAPSHOT)
    found.disagree(between_surfaces(given.kernel), "tri_surface_incoherence", f"{REFRESH}, then {SNAPSHOT}")
    if given.state is None:
        found.lacks(STATE_PATH, given.state_fault, SNAPSHOT)
    for name, reading in given.kernel.faults.items():
        # A handoff kernel is its own guard's business; here it is a surface that might be absent.
        found.lacks_surface(reading.path, reading.status, required=name in REQUIRED)
    _optional(given, found)
    return found


def _against_state(given: Given) -> list[Mismatch]:
    kernel, state = given.kernel, given.state or {}
    branch = kernel.bootstrap.branch if kernel.bootstrap else None
    phase = kernel.ssot.phase if kernel.ssot else None
    green = kernel.reality.green if kernel.reality else None
    stated = state.get("current_phase")
    said_phase = str(stated) if isinstance(stated, int) and not isinstance(stated, bool) else stated
    return [
        *_compared(BRANCH_CHECK, branch, state.get("branch"), kernel.paths[BOOTSTRAP]),
        *_compared(PHASE_CHECK, phase, said_phase, kernel.paths[SSOT]),
        *_compared(REALITY_CHECK, green, state.get("reality_green"), kernel.paths[REALITY]), *_key_checks(given),
    ]


def _compared(check: str, expected: Any, actual: Any, path: str) -> list[Mismatch]:
    """As ``compared``, but a side that is missing is never equal, not even to another that is missing."""
    if expected is None and actual is None:
        return [Mismatch(check=check, expected=None, actual=None, surfaces=[path, STATE_PATH])]
    return compared(check, expected, actual, path, STATE_PATH)


def _key_checks(given: Given) -> list[Mismatch]:
    if given.kernel.reality is None or given.state is None:
        return []
    found = []
    for name in KEY_CHECKS:
        verdict, stated = given.kernel.reality.verdict(name), _said(given.state, name)
        if verdict is not None and stated is not None:
            found += compared(name, verdict, stated, given.kernel.paths[REALITY], STATE_PATH)
    return found


def _said(state: dict[str, Any], name: str) -> bool | None:
    """STATE's verdict on a check: false if any of that name failed, None if there is none."""
    listed = state.get("checks_summary")
    verdicts = [
        entry.get("passed")
        for entry in (listed if isinstance(listed, list) else [])
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get("passed"), bool)
    ]
    return all(verdicts) if verdicts else None


def _optional(given: Given, found: Findings) -> None:
    for reading in given.observed.surfaces:
        if reading.name == CONTEXT and reading.status == "missing":
            found.lacks(reading.path, "missing", "pmagent init", required=False)
    for path in given.absent:
        if path not in found.missing and path not in found.absent:
            found.lacks(path, "missing", None, required=False)
