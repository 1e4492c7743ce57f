"""How the kill switch stands, as far as one boot of the device tells, and how people are told; pure (docs/design.md
§16.7)."""

from __future__ import annotations

import re
from typing import Final

from pmagent.contracts.pla import KillSwitch

SAID: Final[dict[str, str]] = {
    "ARMED": "ready", "DISABLED": "hit: nothing can be typed", "UNKNOWN": "not known: nothing can be typed",
}  # fmt: skip
"""The contract's words for the switch, as people read them: there a switch that was hit is DISABLED, which sounds as
if it did not work, and a ready one ARMED, as a device is that may type."""
_TOLD: Final = re.compile(rf"\b(switch(?: is)?) ({'|'.join(SAID)})\b")


def said(text: str) -> str:
    """``text`` with the contract's words for the switch as people read them. Decisions hold the contract's, and so do
    the log and all documents."""
    return _TOLD.sub(lambda found: f"{found[1]} {SAID[found[2]]}", text)


def latched(before: KillSwitch, reported: KillSwitch) -> KillSwitch:
    """The state of a boot that was ``before`` and says ``reported``. A device takes a kill back only at power-on, which
    is another boot: any other report of this boot is an older one that came late or twice."""
    return before if before == "DISABLED" else reported
