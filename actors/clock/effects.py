"""Timers, performed: sleep until the time asked for, then say so (docs/design.md §4.4).

A timer is repeatable: after a crash or a restart it is set again, and one that became due meanwhile fires at once.
"""

from __future__ import annotations

from typing import Final

from pmagent.actors.core.actor import Io, Performers
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.events.event import Event


async def fire(event: Event, io: Io) -> TimerFired:
    """Return at the requested log time or later."""
    request: TimerRequested = event.data
    await io.sleep_until(request.at)
    return TimerFired(request=event.position, name=request.name)


PERFORMERS: Final[Performers] = {TimerRequested: fire}
