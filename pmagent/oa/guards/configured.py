"""Configured guards: programs of the workspace whose exit code says whether all is well (docs/checks.md)."""

from __future__ import annotations

import os
from pathlib import Path

from actors.checks.results import details
from contracts.checks import CheckResult
from contracts.oa_documents import GuardMode, GuardReport, OADiagnostic
from pmagent.config import resolve
from pmagent.config_programs import Programs, normalized
from pmagent.oa.guards.report import Findings, report


def configured(workspace: Path) -> Programs:
    """The guards that the workspace configures, by normalized name. Raises ConfigError."""
    return resolve(str(workspace), os.environ).guards


def run_configured_guard(name: str, workspace: Path, mode: GuardMode = "STRICT", timestamp: str = "") -> GuardReport:
    """Have a configured guard run in the sandbox, through the workspace's log; blocking. Not from within a performer:
    it asks for the log, and whoever performs holds it.

    Raises ConfigError, BadCheckRequest for a name that no guard has, and what asking raises.
    """
    from pmagent.workspace.checks import ask  # it needs the host, which other guards do not

    settings = resolve(str(workspace), os.environ).settings.kernel
    (result,) = ask(workspace, "guard", [normalized(name)], settings)
    return report(_findings(result), mode, timestamp)


def _findings(result: CheckResult) -> Findings:
    said = {"guard": result.name, **details(result)}
    if result.passed:
        return Findings(details=said)
    diagnostic = OADiagnostic(
        type="issue",
        category="config_drift",
        severity="error",
        message=f"{result.name}: {result.message}",
        details={"guard": result.name, "ran": result.ran},
        remediation=result.mend or f"mend what it names, then: pmagent oa guard --name {result.name}",
    )
    return Findings(diagnostics=[diagnostic], details=said, failed=True)
