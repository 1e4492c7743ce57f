"""The actions that each mode allows; pure (docs/design.md §12.2)."""

from __future__ import annotations

from collections.abc import Iterable

from pmagent.actors.core.authority import Authority
from pmagent.contracts.kernel import WATCHER, KernelModeDecided, Mode, Reason
from pmagent.contracts.oa import GRANTOR, Interpretation, OaPermitGranted, OaPermitRevoked
from pmagent.contracts.orchestra_events import RunEnded

WORK = ("feature_work", "ops_blocks", "migrations", "phase_transitions")
CARE = ("remediation", "diagnostic")

ALLOWED: dict[Mode, tuple[str, ...]] = {"NORMAL": WORK, "DEGRADED": CARE, "BLOCKED": ("diagnostic",)}
FORBIDDEN: dict[Mode, tuple[str, ...]] = {"NORMAL": (), "DEGRADED": WORK, "BLOCKED": (*WORK, "remediation")}
"""The table's two columns. "Everything else" of BLOCKED is spelt out; an action in neither column of any row
does not exist, and is forbidden."""

ACTIONS = frozenset((*WORK, *CARE))
"""Every action class there is."""


def allows(mode: Mode, action: str) -> bool:
    """Whether ``action`` may be done in ``mode``.

    NORMAL forbids nothing that exists: what a worse mode lets people do to mend the kernel stays allowed in
    it.
    """
    return action in ACTIONS and action not in FORBIDDEN[mode]


def ends(decided: KernelModeDecided, action: str) -> bool:
    """Whether effects of ``action`` end with this change of the mode: it does not allow them, or goes to BLOCKED, which
    ends even those that it allows."""
    blocked = decided.mode == "BLOCKED" and decided.previous != "BLOCKED"
    return blocked or not allows(decided.mode, action)


AUTHORITY = Authority(GRANTOR, WATCHER, OaPermitGranted, (OaPermitRevoked, RunEnded), KernelModeDecided, ends)
"""The OA grants, within what the kernel watcher's mode allows. A run's permit ends with it."""


def interpret(mode: Mode, reasons: Iterable[Reason]) -> Interpretation:
    """The mode in words for the boot envelope; each way to mend a reason is named once, in the reasons'
    order."""
    return Interpretation(
        allowed_actions=list(ALLOWED[mode]), forbidden_actions=list(FORBIDDEN[mode]),
        recommended_commands=list(dict.fromkeys(reason.mend for reason in reasons if reason.mend)),
    )
