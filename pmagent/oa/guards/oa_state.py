"""Guard oa_state: STATE.json, REALITY_GREEN and the bootstrap say the same (docs/design.md §12.5)."""

from __future__ import annotations

from typing import Any

from pmagent.actors.kernel.coherence import BRANCH_CHECK, PHASE_CHECK, REALITY_CHECK, between_surfaces, compared
from pmagent.actors.kernel.surfaces import BOOTSTRAP, CONTEXT, KEY_CHECKS, REALITY, REQUIRED, SSOT
from pmagent.contracts.oa_documents import Mismatch, OADiagnostic
from pmagent.oa.guards.reading import STATE_PATH, Given
from pmagent.oa.guards.report import REFRESH, SNAPSHOT, Findings, lacking, mismatched, surface_lacking


def check(given: Given) -> Findings:
    """Compare STATE.json with the surfaces, and the surfaces with each other."""
    found = Findings(mismatches=[*_against_state(given), *between_surfaces(given.kernel)])
    found.diagnostics = [_diagnosed(mismatch) for mismatch in found.mismatches]
    if given.state is None:
        found.missing.append(STATE_PATH)
        found.diagnostics.append(lacking(STATE_PATH, given.state_fault, required=True, remediation=SNAPSHOT))
    for name, reading in given.kernel.faults.items():
        # A handoff kernel is its own guard's business; here it is a surface that might be absent.
        required = name in REQUIRED
        (found.missing if required else found.absent).append(reading.path)
        found.diagnostics.append(surface_lacking(reading.path, reading.status, required=required))
    _optional(given, found)
    return found


def _against_state(given: Given) -> list[Mismatch]:
    kernel, state = given.kernel, given.state or {}
    branch = kernel.bootstrap.branch if kernel.bootstrap else None
    phase = kernel.ssot.phase if kernel.ssot else None
    green = kernel.reality.green if kernel.reality else None
    said = state.get("current_phase")
    said_phase = str(said) if isinstance(said, int) and not isinstance(said, bool) else said
    return [
        *_compared(BRANCH_CHECK, branch, state.get("branch"), kernel.paths[BOOTSTRAP]),
        *_compared(PHASE_CHECK, phase, said_phase, kernel.paths[SSOT]),
        *_compared(REALITY_CHECK, green, state.get("reality_green"), kernel.paths[REALITY]),
        *_key_checks(given),
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
        verdict, said = given.kernel.reality.verdict(name), _said(given.state, name)
        if verdict is not None and said is not None:
            found += compared(name, verdict, said, given.kernel.paths[REALITY], STATE_PATH)
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
            found.absent.append(reading.path)
            found.diagnostics.append(lacking(reading.path, "missing", required=False, remediation="pmagent init"))
    for path in given.absent:
        if path not in found.missing and path not in found.absent:
            found.absent.append(path)
            found.diagnostics.append(lacking(path, "missing", required=False, remediation=None))


def _diagnosed(mismatch: Mismatch) -> OADiagnostic:
    if STATE_PATH in mismatch.surfaces:
        return mismatched(mismatch, "kernel_mismatch", SNAPSHOT)
    return mismatched(mismatch, "tri_surface_incoherence", f"{REFRESH}, then {SNAPSHOT}")
