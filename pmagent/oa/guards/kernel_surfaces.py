"""Guards on the kernel surfaces alone: bootstrap_consistency, handoff_kernel, dms_alignment,
surface_schema."""

from __future__ import annotations

from typing import Any

from pmagent.actors.kernel.coherence import between_surfaces, compared
from pmagent.actors.kernel.surfaces import (
    BOOTSTRAP,
    CONTEXT,
    DMS_ALIGNMENT,
    HANDOFF,
    REALITY,
    REQUIRED,
    SSOT,
    Handoff,
    Kernel,
)
from pmagent.contracts.oa_documents import Mismatch
from pmagent.oa.guards.reading import Given
from pmagent.oa.guards.report import REFRESH, Findings


def bootstrap_consistency(given: Given) -> Findings:
    """The bootstrap and the SSOT surface name the same phases, and its health is that of the reality
    summary."""
    kernel = given.kernel
    found = _needing(kernel, BOOTSTRAP, SSOT, REALITY)
    mismatches = between_surfaces(kernel)
    if kernel.bootstrap and kernel.ssot:
        mismatches += _both(
            "last_completed_phase", kernel.ssot.last_completed, kernel.bootstrap.last_completed, kernel.paths[SSOT],
            kernel.paths[BOOTSTRAP],
        )
    found.disagree(mismatches, "tri_surface_incoherence", REFRESH)
    found.details = {
        "bootstrap_current_phase": kernel.bootstrap.phase if kernel.bootstrap else None,
        "ssot_current_phase": kernel.ssot.phase if kernel.ssot else None,
    }
    return found


def handoff_kernel(given: Given) -> Findings:
    """The handoff kernel repeats what bootstrap, SSOT and reality summary say. Without one there is nothing
    to check."""
    kernel = given.kernel
    found = _needing(kernel, BOOTSTRAP, SSOT, REALITY)
    path = kernel.paths[HANDOFF]
    if kernel.handoff is None:
        fault = kernel.faults.get(HANDOFF)
        found.lacks_surface(path, fault.status if fault else "missing", required=fault is not None)
        return found
    found.disagree(_handoff(kernel, kernel.handoff, path), "kernel_mismatch", REFRESH)
    known = {reading.path for reading in given.observed.surfaces if reading.status != "missing"}
    for needed in kernel.handoff.required_surfaces:
        if needed not in known and needed not in given.observed.existing:
            found.lacks(needed, "missing", REFRESH)
    return found


def _handoff(kernel: Kernel, handoff: Handoff, path: str) -> list[Mismatch]:
    mismatches: list[Mismatch] = []
    if kernel.bootstrap:
        mismatches += _both("branch", kernel.bootstrap.branch, handoff.branch, kernel.paths[BOOTSTRAP], path)
    if kernel.ssot:
        said, last = handoff.phase, handoff.last_completed
        mismatches += _both("phase", kernel.ssot.phase, said, kernel.paths[SSOT], path)
        mismatches += _both("last_completed_phase", kernel.ssot.last_completed, last, kernel.paths[SSOT], path)
    if kernel.reality:
        where = (kernel.paths[REALITY], path)
        mismatches += _both("reality", kernel.reality.green, handoff.reality_green, *where)
        for name, passed in handoff.checks.items():
            mismatches += _both(name, kernel.reality.verdict(name), passed, *where)
    return mismatches


def dms_alignment(given: Given) -> Findings:
    """Documents and share are aligned, and the surfaces that tell so agree. Without any, there is nothing to
    check."""
    kernel = given.kernel
    found = _needing(kernel, SSOT, REALITY)
    declared = kernel.ssot.share_alignment if kernel.ssot else None
    verdict = kernel.reality.verdict(DMS_ALIGNMENT) if kernel.reality else None
    mismatches = [mismatch for mismatch in between_surfaces(kernel) if mismatch.check == DMS_ALIGNMENT]
    if declared is not None and verdict is not None:
        where = (kernel.paths[REALITY], kernel.paths[SSOT])
        mismatches += compared(DMS_ALIGNMENT, verdict, declared == "OK", *where)
    found.disagree(mismatches, "tri_surface_incoherence", REFRESH)
    found.failed = verdict is False or declared not in (None, "OK")
    found.details = {"dms_share_alignment": declared, **_lists(kernel)}
    return found


def surface_schema(given: Given) -> Findings:
    """Each required surface is there, and each surface that is there holds what the contract reads from
    it."""
    found = Findings()
    for reading in given.observed.surfaces:
        if (fault := given.kernel.faults.get(reading.name)) is not None:
            found.lacks_surface(fault.path, fault.status, required=reading.name != CONTEXT)
        elif reading.status == "missing":
            found.absent.append(reading.path)
    found.details = {reading.name: reading.status for reading in given.observed.surfaces}
    return found


def _needing(kernel: Kernel, *names: str) -> Findings:
    """Findings that begin with those of the surfaces ``names`` that are missing or invalid."""
    found = Findings()
    for name in names:
        if fault := kernel.faults.get(name):
            assert name in REQUIRED
            found.lacks_surface(fault.path, fault.status)
    return found


def _both(check: str, expected: Any, actual: Any, *surfaces: str) -> list[Mismatch]:
    """As ``compared``, where both sides have it."""
    return [] if expected is None or actual is None else compared(check, expected, actual, *surfaces)


def _lists(kernel: Kernel) -> dict[str, Any]:
    """The lists that the check "DMS Alignment" reports, where it does."""
    checks = kernel.reality.checks if kernel.reality else []
    details = next((check.details for check in checks if check.name == DMS_ALIGNMENT), None)
    known = details if isinstance(details, dict) else {}
    return {
        key: known[key]
        for key in ("missing_in_share", "missing_in_dms", "extra_in_share")
        if isinstance(known.get(key), list)
    }
