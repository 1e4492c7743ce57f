"""Having a configured guard run: through the workspace's log, like every program (docs/checks.md)."""

from __future__ import annotations

import os
from pathlib import Path

from pmagent.contracts.oa_documents import GuardMode, GuardReport
from pmagent.oa.guards.configured import findings
from pmagent.oa.guards.report import report
from pmagent.workspace.ask_checks import ask
from pmagent.workspace.settings import resolve
from pmagent.workspace.settings_programs import normalized


def run_configured_guard(name: str, workspace: Path, mode: GuardMode = "STRICT", timestamp: str = "") -> GuardReport:
    """Have a configured guard run in the sandbox, through the workspace's log; blocking. Not from within a performer:
    it asks for the log, and whoever performs holds it.

    Raises ConfigError, BadCheckRequest for a name that no guard has, and what asking raises.
    """
    settings = resolve(str(workspace), os.environ).settings.kernel
    (result,) = ask(workspace, "guard", [normalized(name)], settings)
    return report(findings(result), mode, timestamp)
