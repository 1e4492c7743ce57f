"""From what a guard found to its report (docs/design.md §12.5)."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.contracts.oa_documents import GuardMode, GuardReport, Mismatch, OADiagnostic

REFRESH = "pmagent kernel refresh"
SNAPSHOT = "pmagent oa snapshot"


class Findings(msgspec.Struct):
    """What a guard found. ``missing`` fails the guard, ``absent`` (optional surfaces) only warns; ``failed``
    is set by what is neither a mismatch nor a missing surface."""

    mismatches: list[Mismatch] = []
    missing: list[str] = []
    absent: list[str] = []
    diagnostics: list[OADiagnostic] = []
    details: dict[str, Any] = {}
    failed: bool = False


def report(found: Findings, mode: GuardMode, timestamp: str = "") -> GuardReport:
    """The guard's report. ``ok`` does not depend on ``mode``."""
    return GuardReport(
        ok=not (found.mismatches or found.missing or found.failed), mode=mode, mismatches=found.mismatches,
        missing_surfaces=list(dict.fromkeys([*found.missing, *found.absent])), timestamp=timestamp,
        diagnostics=found.diagnostics, details=found.details,
    )


def exit_code(answer: GuardReport) -> int:
    """0, except for a guard that fails in STRICT."""
    return 1 if answer.mode == "STRICT" and not answer.ok else 0


def mismatched(mismatch: Mismatch, category: str, remediation: str) -> OADiagnostic:
    """The diagnostic that explains a mismatch."""
    return OADiagnostic(
        type="issue", category=category, severity="error",
        message=f"{mismatch.check}: {mismatch.surfaces[0]} and {mismatch.surfaces[-1]} disagree",
        details={"check": mismatch.check, "expected": mismatch.expected, "actual": mismatch.actual},
        remediation=remediation,
    )


def surface_lacking(path: str, why: str, *, required: bool) -> OADiagnostic:
    """``lacking`` for a kernel surface: what is missing is written anew, what is broken is for a person to mend."""
    mend = REFRESH if why == "missing" else f"repair {path}, or delete it and run: {REFRESH}"
    return lacking(path, why, required=required, remediation=mend)


def lacking(path: str, why: str, *, required: bool, remediation: str | None) -> OADiagnostic:
    """The diagnostic for a surface that is not there (``why`` is "missing") or not valid (a reading's
    status)."""
    return OADiagnostic(
        type="issue" if required else "warn", category="missing_surface" if why == "missing" else "schema_violation",
        severity="error" if required else "warn", message=f"{path}: {why.replace('_', ' ')}",
        details={"path": path, "status": why}, remediation=remediation,
    )
