"""Configured guards: programs of the workspace whose exit code says whether all is well (docs/checks.md)."""

from __future__ import annotations

import os
from pathlib import Path

from pmagent.actors.checks.results import details
from pmagent.contracts.checks import CheckResult
from pmagent.contracts.oa_documents import OADiagnostic
from pmagent.oa.guards.report import Findings
from pmagent.workspace.settings import resolve
from pmagent.workspace.settings_programs import Programs


def configured(workspace: Path) -> Programs:
    """The guards that the workspace configures, by normalized name. Raises ConfigError."""
    return resolve(str(workspace), os.environ).guards


def findings(result: CheckResult) -> Findings:
    """The findings of a guard's run."""
    details_ = {"guard": result.name, **details(result)}
    if result.passed:
        return Findings(details=details_)
    diagnostic = OADiagnostic(
        type="issue", category="config_drift", severity="error", message=f"{result.name}: {result.message}",
        details={"guard": result.name, "ran": result.ran},
        remediation=result.mend or f"mend what it names, then: pmagent oa guard --name {result.name}",
    )
    return Findings(diagnostics=[diagnostic], details=details_, failed=True)
