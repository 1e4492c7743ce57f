"""The stop switch in a simulated world: operators pause and resume effects, at the worst moments too, and others forge
pauses and resumptions in the gate's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from pmagent.contracts.control import Channel, EffectsPaused, EffectsResumed, PauseRequested, ResumeRequested
from pmagent.contracts.effect import EffectCancelled, EffectRefused
from pmagent.events.event import Event
from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.faults import Faults
from pmagent.replay.simulation.invariants_pauses import Pauses
from pmagent.replay.simulation.machine import Machine
from pmagent.replay.simulation.workload import HANDS, WorkAsked
from pmagent.replay.simulation.world import World

NAMES: Final = ("ada", "grace")

PAUSE_CHANCES: Final[dict[str, float]] = {
    "pause: in the midst of much work": 0.5,
    "pause: much is asked for in it": 0.3,
    "pause: by another as well": 0.3,
    "pause: taken back at once": 0.3,
    "pause: longer than permits": 0.3,
    "pause: nobody resumes": 0.1,
    "pause: the process is killed": 0.3,
    "pause: the process is stopped": 0.5,
    "pause: between approval and order": 0.3,
    "pause: while it types": 0.03,
    "resume: out of turn": 0.2,
    "resume: and killed": 0.2,
    "pause: said by another actor": 0.2,
    "resume: said by another actor": 0.7,
    "resume: said by nobody": 0.3,
}
"""Fault -> the chance that it strikes at an occasion, at its most frequent."""

PAUSE_CONSEQUENCES: Final = (
    "pause: paused", "pause: paused already", "pause: resumed", "pause: resumed though not paused",
    "pause: held effects released", "pause: a held effect refused", "pause: a held effect cancelled",
    "pause: what must not wait is refused",
)  # fmt: skip
"""Consequences; counted too, to prove that they occurred."""


class Switch:
    """``demand`` sends a request until it is known to be in the log; ``pending`` says whether one is not yet."""

    def __init__(
        self, world: World, machine: Machine, faults: Faults, demand: Callable[[msgspec.Struct], None],
        pending: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._world = world
        self._machine = machine
        self._random = world.chance.stream("switch")
        self._faults = faults
        self._demand = demand
        self._pending = pending
        self._forged = 0
        self._works = 0

    def plan(self, pauses: int, seconds: float) -> None:
        """So many pauses, and what else befalls meanwhile."""
        for _ in range(pauses):
            self._later(0.0, seconds, "pause", self.pause)
            self._later(0.0, seconds, "pause trouble", self._trouble)

    def pause(self) -> None:
        """An operator pauses effects, and resumes them after a while."""
        strike = self._faults.strike
        if strike("pause: in the midst of much work"):
            self._work()
            self._later(0.0, 1.0, "pause", self._ask_pause)
        else:
            self._ask_pause()
        if strike("pause: much is asked for in it"):
            self._later(0.0, 1.0, "work", self._work)
        if strike("pause: by another as well"):
            self._later(0.0, 2.0, "pause", self._ask_pause)
        longest = 10.0
        if strike("pause: taken back at once"):
            longest = 0.02
        elif strike("pause: longer than permits"):
            longest = 90.0
        if strike("pause: the process is killed"):
            self._later(0.0, longest, "pause killed", self._machine.kill)
        if strike("pause: the process is stopped"):
            self._later(0.0, longest, "pause stopped", self._stop)
        if not strike("pause: nobody resumes"):
            self._later(0.0, longest, "resume", self._resume)

    def typing(self) -> None:
        """A report leaves the keyboard device."""
        if self._faults.strike("pause: while it types"):
            self._later(0.0, 0.02, "pause", self.pause)

    def approved(self) -> None:
        """An operator has approved a proposal."""
        if self._faults.strike("pause: between approval and order"):
            self._later(0.0, 0.1, "pause", self.pause)

    def _work(self) -> None:
        """So much is asked for at once that some of it has to wait for a place."""
        for _ in range(6):
            self._works += 1
            n = 1 + 2 * self._works
            self._demand(WorkAsked(n=n, how="permit", to=self._random.choice(HANDS), action="diagnostic"))

    def _ask_pause(self) -> None:
        reason = self._random.choice(("", "the bench is being rewired"))
        self._demand(PauseRequested(operator_id=self._who(), channel=self._channel(), reason=reason))

    def _ask_resume(self) -> None:
        self._demand(ResumeRequested(operator_id=self._who(), channel=self._channel()))

    def _resume(self) -> None:
        self._ask_resume()
        if self._faults.strike("resume: and killed"):
            self._later(0.0, 0.02, "resume killed", self._machine.kill)

    def _trouble(self) -> None:
        strike = self._faults.strike
        if strike("resume: out of turn"):
            self._ask_resume()
        for how in ("pause", "resume"):
            if strike(f"{how}: said by another actor"):
                self._forged += 1
                self._demand(WorkAsked(n=self._forged, how=how, to=self._random.choice(HANDS)))
        if self._machine.up and strike("resume: said by nobody"):
            self._forged += 1
            forged = EffectsResumed(request=1, since=1, held=0, operator_id="eve", channel="cli")
            self._machine.guard(self._machine.append, forged, f"forged-resumption:{self._forged}", "gate")

    def _stop(self) -> None:
        if self._machine.up:
            self._machine.guard(self._machine.stop)

    # --- the end of a run -----------------------------------------------------------------------------------------

    def calm(self) -> None:
        """Nobody wants a pause any more; in the end effects start."""
        self._faults.calm()
        self._world.later(3.0, "last resumption", self._last)

    def _last(self) -> None:
        pending = self._pending()
        if not pending and not self._machine.watch.starts.pauses.since:
            return
        if not pending:
            self._ask_resume()
        self._world.later(2.0, "last resumption", self._last)

    def struck(self) -> Mapping[str, int]:
        """How often each fault struck, and what followed."""
        for consequence in _consequences(self._machine.watch.history):
            self._faults.note(consequence)
        return self._faults.struck

    def _who(self) -> str:
        return self._random.choice(NAMES)

    def _channel(self) -> Channel:
        channels: tuple[Channel, ...] = ("cli", "console")
        return self._random.choice(channels)

    def _later(self, low: float, high: float, label: str, action: Callable[[], None]) -> None:
        self._world.later(between(self._random, low, high), label, action)


def _consequences(history: Sequence[Event]) -> Iterator[str]:
    pauses = Pauses()
    for event in history:
        match event.data:
            case EffectsPaused() if event.actor == "gate" and event.kind == "decision":
                yield "pause: paused already" if pauses.since else "pause: paused"
            case EffectsResumed(held=held) if event.actor == "gate" and event.kind == "decision":
                yield "pause: resumed" if pauses.since else "pause: resumed though not paused"
                if held:
                    yield "pause: held effects released"
            case EffectCancelled() if event.causation in pauses.held:
                yield "pause: a held effect cancelled"
            case EffectRefused(reasons=[*_, reason]) if "must not wait" in reason:
                yield "pause: what must not wait is refused"
        before = len(pauses.held)
        pauses.take(event)
        if event.type == "effect.refused" and len(pauses.held) < before and event.causation != event.data.request:
            yield "pause: a held effect refused"
