"""Guests: agents that pmagent did not write. Their calls are judged, and approved by operators (docs/guests.md)."""

from typing import Final

from pmagent.actors.core.area import Area

AREA: Final = Area(
    name="guests", families=("guest",), contracts=("pmagent.contracts.guests",),
    actors={"guests": "pmagent.actors.guests.actor:Guests"}, after=("pla",),
    projections=("pmagent.projections.guests.sessions:GuestSessions",),
    laws=("pmagent.replay.areas.invariants_guests:check_guests",),
    rests=("pmagent.replay.areas.invariants_guests:check_guests_idle",),
    lines="pmagent.actors.guests.lines:LINES", alerts="pmagent.actors.guests.alerts:ALERTS",
)  # fmt: skip
