"""The kernel's reader, and the clock, in a simulated world."""

from __future__ import annotations

from collections.abc import Callable

from pmagent.actors.kernel.reader import read_surfaces
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.kernel import KernelReadRequested
from pmagent.events.event import Event
from pmagent.replay.simulation.performance import Performance, Performances, PerformerContext
from pmagent.replay.simulation.running import Running
from pmagent.replay.simulation.surfaces import WORKSPACE


def part(context: PerformerContext) -> Performances:
    """See ``Area.simulated``."""
    files = context.files
    return {KernelReadRequested: Performance(lambda event: read_surfaces(WORKSPACE, files, request=event.position))}


def clock(context: PerformerContext) -> Performances:
    """See ``Area.simulated``."""
    return {TimerRequested: timer(context, lambda event: event.data.at, lambda event: event.data.name)}


def timer(context: PerformerContext, at: Callable[[Event], str], name: Callable[[Event], str]) -> Performance:
    """The performance of requests for a timer: when it is due, and its name."""
    world = context.world

    def outcome(event: Event) -> TimerFired:
        return TimerFired(request=event.position, name=name(event))

    def fire(running: Running) -> None:
        left = world.until(at(running.event))  # the clock may have been set back meanwhile
        if left > 0:
            world.later(left + 0.000001, "timer", lambda: fire(running))
        else:
            context.answer(running, outcome(running.event))

    def perform(running: Running, _: float) -> None:
        world.later(world.until(at(running.event)) + 0.000001, "timer", lambda: fire(running))

    return Performance(outcome, perform=perform, sure=True)
