"""The guards by name, and how one is run (docs/design.md §12.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pmagent.contracts.oa_documents import GuardMode, GuardReport
from pmagent.oa.guards import kernel_surfaces, log, oa_state
from pmagent.oa.guards.reading import Given, read_workspace
from pmagent.oa.guards.report import Findings, report
from pmagent.projections.core.disk import require_current
from pmagent.projections.oa.state import OaState
from pmagent.workspace.settings_programs import normalized

Guard = Callable[[Given], Findings]

GUARDS: Mapping[str, Guard] = {
    "oa_state": oa_state.check, "bootstrap_consistency": kernel_surfaces.bootstrap_consistency,
    "handoff_kernel": kernel_surfaces.handoff_kernel, "dms_alignment": kernel_surfaces.dms_alignment,
    "surface_schema": kernel_surfaces.surface_schema, "oa_tools": oa_state.oa_tools,
    "reasoning_bridge": oa_state.reasoning_bridge, "log_integrity": log.log_integrity, "projections": log.projections,
}
"""Every built-in guard, by the name under which it is run."""


_WITHOUT_STATE: Final = (log.log_integrity, log.projections)
"""They look at the log, and not at STATE.json."""


def run_guard(name: str, workspace: Path, mode: GuardMode = "STRICT", timestamp: str = "") -> GuardReport:
    """Read the workspace now and run one guard over it. Raises KeyError for a name that no guard has,
    ProjectionHalted and DocumentUnwritable when STATE.json is stale, or nobody knows whether it is."""
    guard = GUARDS[normalized(name)]
    if guard not in _WITHOUT_STATE:
        require_current(workspace, OaState.name)
    return report(guard(read_workspace(workspace)), mode, timestamp)
