"""The kernel's reader, and the clock, in a simulated world."""

from __future__ import annotations

from pmagent.actors.kernel.reader import read_surfaces
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.kernel import KernelReadRequested
from pmagent.events.event import Event
from pmagent.replay.simulation.part import How, Hows, Place
from pmagent.replay.simulation.running import Running
from pmagent.replay.simulation.surfaces import WORKSPACE


def part(place: Place) -> Hows:
    """See ``Area.simulated``."""
    return {KernelReadRequested: How(lambda event: read_surfaces(WORKSPACE, place.files, request=event.position))}


def clock(place: Place) -> Hows:
    """See ``Area.simulated``."""
    world = place.world

    def outcome(event: Event) -> TimerFired:
        return TimerFired(request=event.position, name=event.data.name)

    def fire(running: Running) -> None:
        left = world.until(running.event.data.at)  # the clock may have been set back meanwhile
        if left > 0:
            world.later(left + 0.000001, "timer", lambda: fire(running))
        else:
            place.answer(running, outcome(running.event))

    def perform(running: Running, _: float) -> None:
        world.later(world.until(running.event.data.at) + 0.000001, "timer", lambda: fire(running))

    return {TimerRequested: How(outcome, perform=perform, sure=True)}
