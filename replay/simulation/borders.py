"""Faults at the borders of the engine, and what must follow: a reaction is cut off in its midst, an outcome cannot be
kept, a projection raises."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.core.intake import Intake
from pmagent.actors.core.integrity import EngineBroken
from pmagent.actors.core.outcomes import fact_of, unrecorded
from pmagent.contracts.clock import TimerFired
from pmagent.contracts.effect import EffectCancelled
from pmagent.contracts.payload import encode, type_of
from pmagent.events.event import Draft, Event
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.faults import Faults
from pmagent.replay.simulation.world import World, require

if TYPE_CHECKING:
    from pmagent.replay.simulation.invariants import Documents
    from pmagent.replay.simulation.machine import Machine

BORDER_CHANCES: Final[dict[str, float]] = {
    "engine: cut off in a reaction": 0.01,
    "outcome: cannot be kept": 0.05,
    "projection: raises": 0.02,
}
"""Fault -> the chance that it strikes at an occasion, at its most frequent."""

BORDER_CONSEQUENCES: Final = ("engine: broken", "outcome: unknown", "projection: written anew")

BOOKED_MAX: Final = 6
"""An engine is cut off at so manieth event of a reaction at most."""


class Interrupted(BaseException):
    """A second Ctrl-C: it is raised anywhere, and is nobody's exception."""


class Borders:
    """The faults of one run; ``only`` some of them."""

    def __init__(self, chance: Chance, only: frozenset[str] | None = None) -> None:
        self._random = chance.stream("borders")
        self.faults = Faults(chance, "borders", only, BORDER_CHANCES, BORDER_CONSEQUENCES)
        self.halted: set[str] = set()
        """The projections that are halted, in this process."""

    def take(self, engine: Engine, accept: Callable[[], Output | None]) -> Output | None:
        """``accept()``; now and then it is cut off, at one of the events of the reaction. Raises Interrupted."""
        if not self.faults.strike("engine: cut off in a reaction"):
            return accept()
        book, left = engine.effects.book, [self._random.randrange(BOOKED_MAX)]

        def cut_off(event: Event) -> Any:
            if left[0] == 0:
                raise Interrupted
            left[0] -= 1
            return book(event)

        setattr(engine.effects, "book", cut_off)  # noqa: B010 - for this reaction
        try:
            return accept()
        finally:
            setattr(engine.effects, "book", book)  # noqa: B010

    def draft(self, intake: Intake, event: Event, payload: msgspec.Struct, word: str) -> Draft:
        """The outcome's draft, as in ``pmagent.actors.core.runtime``: one that cannot be kept is unknown. A
        cancellation is the scheduler's own, and too small to need a blob."""
        try:
            if not isinstance(payload, EffectCancelled) and self.faults.strike("outcome: cannot be kept"):
                raise OSError(errno.ENOSPC, "no space left on device")
            outcome, _, area, correlation, causation = fact_of(event, payload)
            return intake.fact(outcome, f"{event.position}.{word}", area, correlation, causation)
        except OSError as error:
            self.faults.note("outcome: unknown")
            unknown, id, area, correlation, causation = fact_of(event, unrecorded(event, error))
            return intake.fact(unknown, id, area, correlation, causation)

    def project(self, documents: Documents | None) -> None:
        """Look at the projections after they have folded something; one of them raises now and then."""
        if documents is None:
            return
        require(documents.halted.keys() <= self.halted, f"a projection raised: {documents.halted}")
        if self.faults.strike("projection: raises"):
            name = self._random.choice(documents.names)
            self.halted.add(name)
            documents.halt(name, RuntimeError("it raises"))

    def started(self, documents: Documents | None) -> None:
        """A new process has folded everything anew, and written it."""
        if self.halted and documents is not None:
            require(not documents.halted, f"a start does not fold what was halted: {documents.halted}")
            self.faults.note("projection: written anew")
            self.halted.clear()


def calm(machine: Machine, world: World) -> None:
    """From now on nothing fails here; a projection that is halted is mended by the next start."""
    machine.borders.faults.calm()

    def stop() -> None:
        if machine.up:
            machine.guard(machine.stop)

    if machine.borders.halted:
        world.later(5.0, "stop", stop)


def end_broken(machine: Machine, error: BaseException) -> None:
    """The orderly stop of a process whose engine was cut off: it takes nothing, and nothing more is written than what
    was handed over whole. ``error`` is what came out of the process. Raises Violation, also when the engine broke of
    itself."""
    if not machine.up:
        return  # it ended in what this was a part of
    require(isinstance(error, Interrupted), f"the engine broke, and nothing had cut it off: {error}")
    engine = machine.engine
    machine.borders.faults.note("engine: broken")
    require(engine.broken is not None and not engine.quiescent, "the engine does not know that it was cut off")
    probe = TimerFired(request=0, name="is it taken?")
    try:
        draft = Draft(type_of(probe), probe, encode(probe), f"probe-{machine.boot}", "tests")
        engine.accept(draft, engine.sequencer.time)
    except EngineBroken:
        pass
    else:
        require(holds=False, message="a broken engine takes a fact")
    machine.end()
