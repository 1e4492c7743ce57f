"""From what a guard found to its report (docs/design.md §12.5)."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.contracts.oa_documents import GuardMode, GuardReport, Mismatch, OADiagnostic

REFRESH = "pmagent kernel refresh"
SNAPSHOT = "pmagent oa snapshot"


class Findings(msgspec.Struct):
    """A guard's findings. ``missing`` fails the guard, ``absent`` (optional surfaces) only warns; ``failed``
    is set by what is neither a mismatch nor a missing surface."""

    mismatches: list[Mismatch] = []
    missing: list[str] = []
    absent: list[str] = []
    diagnostics: list[OADiagnostic] = []
    details: dict[str, Any] = {}
    failed: bool = False

    def lacks(self, path: str, why: str, remediation: str | None, *, required: bool = True) -> None:
        """A file is not there (``why`` is "missing") or not valid (a reading's status)."""
        (self.missing if required else self.absent).append(path)
        self.diagnostics.append(OADiagnostic(
            type="issue" if required else "warn",
            category="missing_surface" if why == "missing" else "schema_violation",
            severity="error" if required else "warn", message=f"{path}: {why.replace('_', ' ')}",
            details={"path": path, "status": why}, remediation=remediation,
        ))

    def lacks_surface(self, path: str, why: str, *, required: bool = True) -> None:
        """``lacks`` for a kernel surface: a missing one is written anew, a broken one is for a person to mend."""
        mend = REFRESH if why == "missing" else f"repair {path}, or delete it and run: {REFRESH}"
        self.lacks(path, why, mend, required=required)

    def disagree(self, mismatches: list[Mismatch], category: str, remediation: str) -> None:
        """Two sides do not say the same."""
        self.mismatches += mismatches
        self.diagnostics += [
            OADiagnostic(
                type="issue", category=category, severity="error",
                message=f"{one.check}: {one.surfaces[0]} and {one.surfaces[-1]} disagree",
                details={"check": one.check, "expected": one.expected, "actual": one.actual}, remediation=remediation,
            )
            for one in mismatches
        ]


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
