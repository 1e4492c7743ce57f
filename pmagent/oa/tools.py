"""The OA's tools (docs/design.md §12.6): seven, read-only, the only way the OA looks at the world.

Each takes the workspace from its argument, else from ``PMAGENT_WORKSPACE``, else the one around the current directory.
They read files at the time of the call and write none.
"""

from __future__ import annotations

import os
from typing import Any, Final

import msgspec

from pmagent.contracts.oa_documents import GuardMode
from pmagent.oa import reading
from pmagent.oa.guards.table import GUARDS
from pmagent.oa.reading import (
    WORKSPACE_VARIABLE,
    OAToolError,
    Registry,
    further_guards,
    get_bootstrap_state,
    get_handoff_kernel,
    get_reality_summary,
    get_ssot_surface,
    kernel_status,
    reality_check,
    workspace_path,
)
from pmagent.workspace.settings_programs import normalized

__all__ = [
    "REGISTRY", "WORKSPACE_VARIABLE", "OAToolError", "call", "get_bootstrap_state", "get_handoff_kernel",
    "get_reality_summary", "get_ssot_surface", "kernel_status", "reality_check", "run_guard", "workspace_path",
]


def run_guard(name: str, workspace: str | os.PathLike[str] | None = None, mode: GuardMode = "STRICT") -> dict[str, Any]:
    """A guard's report; ``name`` in any case, with "-" or "." for "_". Raises OAToolError for an unknown
    one.

    A guard that the workspace configures is a program: it runs in the sandbox, by the daemon or in this process, and
    needs the log; what keeps it from being asked for is raised as it is (PmagentError).
    """
    place = workspace_path(workspace)
    known = mode in ("STRICT", "HINT") and normalized(name) not in GUARDS and normalized(name) in further_guards(place)
    if not known:
        return reading.run_guard(name, workspace, mode)
    from pmagent.oa.guards.configured_run import run_configured_guard  # it needs the host, which reading does not

    report: dict[str, Any] = msgspec.to_builtins(run_configured_guard(name, place, mode))
    return report


REGISTRY: Final[Registry] = {**reading.READERS, "oa.guard.run": run_guard}
"""Tool id -> function."""


def call(tool_id: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool by its id. Raises OAToolError for an unknown id, or arguments that the tool does not
    take."""
    return reading.call(tool_id, REGISTRY, **arguments)
