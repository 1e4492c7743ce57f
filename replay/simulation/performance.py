"""An area's part of a simulated world: how its requests for effects are performed (``Area.simulated``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pmagent.events.event import Event
from pmagent.replay.simulation.running import Running
from pmagent.replay.simulation.surfaces import SimFiles
from pmagent.replay.simulation.world import World


class PerformerContext(NamedTuple):
    """The services of performers. ``read`` gives a durable event by its position, ``history`` all of them; ``answer``
    answers for a performer, unless its process is gone by then; ``outcome`` is its ``Performance.outcome``, or a
    failure by chance."""

    world: World
    files: SimFiles
    secret: str
    read: Callable[[int], Event]
    history: Callable[[], Sequence[Event]]
    answer: Callable[[Running, msgspec.Struct], None]
    outcome: Callable[[Running], msgspec.Struct]


class Performance(NamedTuple):
    """How a request is performed. ``outcome``: the answer to it. ``hangs``: the fault that it never comes; ``twice``:
    that it comes twice. ``perform`` answers in its own way, after about so many seconds, and returns after how many it
    did (None: it never answers again); ``sure``: no fault befalls it."""

    outcome: Callable[[Event], msgspec.Struct]
    hangs: str = ""
    twice: str = "effect: answers twice"
    perform: Callable[[Running, float], float | None] | None = None
    sure: bool = False


Performances = Mapping[type[msgspec.Struct], Performance]
