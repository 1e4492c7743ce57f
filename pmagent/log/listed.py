"""How each log of a database stands, in its holder's words (docs/design.md §11.7)."""

from __future__ import annotations

import msgspec

from pmagent.events.store import ListedLog


class Said(msgspec.Struct, frozen=True):
    """The words of a holder: the mode, whether it is paused, how many requests wait for a person, how many other alerts
    are open, and how many runs and audits are at work."""

    mode: str | None = None
    paused: bool = False
    waiting: int = 0
    alerts: int = 0
    running: int = 0


def said_by(log: ListedLog) -> Said | None:
    """The words of its holder; None where there are none, or none that this release understands."""
    try:
        return msgspec.json.decode(log.said, type=Said)
    except msgspec.DecodeError:
        return None
