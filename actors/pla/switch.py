"""How the kill switch stands, as far as one boot of the device tells; pure (docs/design.md §16.7)."""

from __future__ import annotations

from pmagent.contracts.pla import KillSwitch


def latched(before: KillSwitch, told: KillSwitch) -> KillSwitch:
    """The state after a boot that stood at ``before`` tells of ``told``. A device takes a kill back at power-on, and
    that is another boot: what says otherwise is an older report that came late, or again."""
    return before if before == "DISABLED" else told
