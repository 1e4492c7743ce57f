"""How the kill switch stands, as far as one boot of the device tells; pure (docs/design.md §16.7)."""

from __future__ import annotations

from pmagent.contracts.pla import KillSwitch


def latched(before: KillSwitch, reported: KillSwitch) -> KillSwitch:
    """The state of a boot that was ``before`` and says ``reported``. A device takes a kill back only at power-on, which
    is another boot: any other report of this boot is an older one that came late or twice."""
    return before if before == "DISABLED" else reported
