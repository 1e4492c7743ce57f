"""The reasoning programs' ids, and the tools each may use (spec oa_api_contract, Program -> Tool Mapping)."""

from __future__ import annotations

PROGRAM_TOOLS: dict[str, tuple[str, ...]] = {
    "SafeOPSDecision": ("oa.kernel_status", "oa.reality_summary"),
    "OPSBlockGenerator": ("oa.kernel_status", "oa.ssot_surface", "oa.bootstrap_state"),
    "GuardFailureInterpreter": ("oa.kernel_status", "oa.guard.run"),
    "PhaseTransitionValidator": ("oa.kernel_status", "oa.ssot_surface", "oa.reality_check"),
}
"""Program id -> the tool ids that it may use; no other program exists."""

PROGRAM_IDS = tuple(PROGRAM_TOOLS)

TOOL_IDS = (
    "oa.kernel_status",
    "oa.reality_check",
    "oa.guard.run",
    "oa.bootstrap_state",
    "oa.ssot_surface",
    "oa.reality_summary",
    "oa.handoff_kernel",
)
"""The tools, in the order of the registry; no other tool exists."""

TOOLS_INTERFACE = "pmagent.oa.tools"
TOOLS_REGISTRY = "pmagent.oa.tools.REGISTRY"

IMPLEMENTATION_STATUS = "DESIGN_ONLY"
"""What STATE.json says about the reasoning programs: their contracts exist, the programs do not run yet."""
