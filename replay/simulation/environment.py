"""A daemon's environment: performers that misbehave, an operator who insists, and surfaces that change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from pmagent.actors.areas import AREAS
from pmagent.actors.core.area import load
from pmagent.actors.kernel.reader import read_surfaces
from pmagent.contracts.effect import ActorHalted, ActorResumed, EffectFailed
from pmagent.contracts.oa import OaBootRequested, OaPermitRequested, OaSnapshotRequested
from pmagent.events.event import Event
from pmagent.replay.areas.attempts import CONTENTS
from pmagent.replay.areas.audits import PICTURES, Audits
from pmagent.replay.areas.checks import Checks
from pmagent.replay.areas.guests import Guests
from pmagent.replay.areas.pla.world import PlaWorld
from pmagent.replay.areas.reasoning import Reasoning
from pmagent.replay.areas.runs import Runs
from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.machine import Machine
from pmagent.replay.simulation.pausing import Switch
from pmagent.replay.simulation.performance import Performance, Performances, PerformerContext
from pmagent.replay.simulation.running import Running
from pmagent.replay.simulation.surfaces import WORKSPACE, SimFiles
from pmagent.replay.simulation.workload import ACTIONS, HANDS, Done, QuestionAsked, WorkAsked
from pmagent.replay.simulation.world import World

MISUSES = {
    "permit: used again": "again",
    "permit: used late": "late",
    "permit: used for another action": "action",
    "permit: used for another subject": "subject",
    "permit: used by another": "holder",
}
"""Fault -> the ``use`` of a job."""

_PARTS: Final[list[Callable[[PerformerContext], Performances]]] = [
    load(area.simulated) for area in AREAS if area.simulated
]
"""Those of the areas, loaded before a world begins: nothing in it may read a file."""


class Demand:
    """A request of the operator, sent until it is acknowledged."""

    def __init__(self, id: str, payload: msgspec.Struct) -> None:
        self.id = id
        self.payload = payload
        self.sent_in = 0
        self.done = False


class Environment:
    """One operator, one workspace, and the performers."""

    def __init__(self, world: World, machine: Machine, secret: str) -> None:
        self._world = world
        self._machine = machine
        self._secret = secret
        self._random = world.chance.stream("operator")
        """The wishes so far."""
        self._pace = world.chance.stream("performers")
        """How long performers take."""
        self._files = SimFiles(world)
        self._reasoning = Reasoning(world, self._files, secret)
        self._runs = Runs(world, secret)
        self._checks = Checks(world, secret)
        self._audits = Audits(world, secret)
        context = PerformerContext(
            world, self._files, secret, machine.watch.read, lambda: machine.watch.history, machine.answer, self._outcome
        )
        self._performances: Performances = {request: how for part in _PARTS for request, how in part(context).items()}
        self._usual = Performance(self._done)
        self._number = 0
        self._observations = 0
        self.demands: list[Demand] = []
        self.pla_world: PlaWorld | None = None
        """The PLA's world, where there is one."""
        self.switch: Switch | None = None
        """The stop switch, where somebody uses it."""
        self.guests: Guests | None = None
        """Guests, where there are some."""
        machine.perform = self.perform
        machine.provide((*CONTENTS, *PICTURES))
        machine.observe = self._observe

    # --- the plan of a run ---------------------------------------------------------------------------------------

    def plan(
        self, demands: int, thoughts: int, runs: int, checks: int, audits: int, changes: int, typings: int, pauses: int,
        guests: int, seconds: float,
    ) -> None:
        """Put a run's demands, ``thoughts`` more that ask for reasoning, ``runs`` that have to do with Orchestra,
        ``checks`` that ask for configured checks, ``audits``, ``typings`` (of the PLA), ``pauses``, sessions of
        ``guests``, surface changes, clock faults and stops on the calendar."""
        world = self._world
        if self.pla_world is not None:
            self.pla_world.plan(typings, seconds)
        if self.switch is not None:
            self.switch.plan(pauses, seconds)
        if self.guests is not None:
            self.guests.plan(guests, seconds)
        for often, label, action in (
            (audits, "audit", self.audit), (runs, "run", self.orchestrate), (checks, "checks", self.check),
            (thoughts, "thought", self.think), (demands, "demand", self.demand),
            (changes, "surface", self.change_surface), (20, "trouble", self._trouble),
        ):  # fmt: skip
            for _ in range(often):
                world.later(between(world.chance.stream(f"when: {label}"), 0.0, seconds), label, action)

    def calm(self) -> None:
        """Nothing goes wrong any more in a pause, or with guests."""
        for one in (self.switch, self.guests):
            if one is not None:
                one.calm()

    def struck(self) -> list[Mapping[str, int]]:
        """How often each of their faults struck."""
        return [one.struck() for one in (self.switch, self.guests) if one is not None]

    def _trouble(self) -> None:
        world, machine = self._world, self._machine
        if world.faults.strike("clock: goes back"):
            world.set_clock(-between(self._random, 0.0, 600.0))
        if world.faults.strike("clock: jumps ahead"):
            world.set_clock(between(self._random, 0.0, 3600.0))
        if not world.disk.full and world.faults.strike("disk: full"):
            world.disk.full = True
        if machine.up and world.faults.strike("stop: orderly"):
            machine.guard(machine.stop)

    def change_surface(self) -> None:
        """A surface changes; the watcher sees it a little later."""
        self._files.change()
        self._world.later(0.3, "watcher", self._observe)

    def restore_surfaces(self) -> None:
        """Everything is as it should be again."""
        self._files.write_state("green", 2)
        self._world.later(0.3, "watcher", self._observe)

    def _observe(self) -> None:
        machine = self._machine
        if machine.up:
            self._observations += 1
            observed = read_surfaces(WORKSPACE, self._files)
            machine.guard(machine.append, observed, f"kernel.observed:{self._observations}", "kernel")

    # --- the operator --------------------------------------------------------------------------------------------

    def demand(self, payload: msgspec.Struct | None = None) -> None:
        """The operator wants something."""
        self._number += 1
        demand = Demand(f"operator-{self._number}", payload or self._any_demand(self._number))
        self.demands.append(demand)
        self._send(demand)

    def pending(self) -> bool:
        """Whether something that the operator wants is not known to be in the log yet."""
        return any(not demand.done for demand in self.demands)

    def put_in_order(self) -> None:
        """More often than not the kernel was put in order for what the operator wants now."""
        if self._world.chance.uniform("kernel: put in order") < 0.7:
            self._files.write_state("green", 2)
            self._world.later(0.3, "watcher", self._observe)

    def orchestrate(self) -> None:
        """The operator wants a run, or that one ends."""
        self.put_in_order()
        self._world.later(0.5, "run", lambda: self.demand(self._runs.demand(self._number + 1)))

    def check(self) -> None:
        """The operator wants checks or guards to be run."""
        self.demand(self._checks.demand(self._number + 1))

    def audit(self) -> None:
        """The operator wants an audit, or that one ends."""
        self.put_in_order()
        self._world.later(0.5, "audit", lambda: self.demand(self._audits.demand(self._number + 1)))

    def think(self) -> None:
        """The operator wants a program to be run, or its context written."""
        self.put_in_order()
        if self._machine.up:  # whoever asks reads the surfaces, and finds a daemon
            self.demand(self._reasoning.demand(self._number + 1))

    def _any_demand(self, n: int) -> msgspec.Struct:
        random, faults = self._random, self._world.faults
        kind = random.randrange(10)
        if kind == 0:
            return OaSnapshotRequested()
        if kind == 1:
            return OaBootRequested(session_id=f"oa-session-{n}", workspace=str(WORKSPACE))
        if kind == 2:
            return OaPermitRequested(action=random.choice(ACTIONS), subject=self._secret, holder="nobody", uses=n % 3)
        if kind in (3, 4):
            fatal = random.choice(("decide", "evolve")) if faults.strike("actor: raises") else ""
            return QuestionAsked(n=n, fatal=fatal)
        how = random.choice(("permit", "permit", "permit", "tidy", "tidy", "cancel", "timer"))
        if faults.strike("permit: forged"):
            how = "forge"
        seconds = between(random, 0.01, random.choice((5.0, 60.0)))
        return WorkAsked(
            n=n, how=how, to=random.choice(HANDS), action=random.choice(ACTIONS), seconds=seconds,
            use=next((use for fault, use in MISUSES.items() if how == "permit" and faults.strike(fault)), ""),
            after=between(random, 0.0, random.choice((1.0, 3.0)) * seconds),
            text=f"please, with password={self._secret}",
        )

    def _send(self, demand: Demand) -> None:
        """Send; look again in a while whether it was acknowledged, and else send the same again."""
        world, machine = self._world, self._machine
        if demand.done:
            return
        if machine.up and demand.sent_in != machine.boot:
            if demand.sent_in:
                world.faults.note("request: sent again")
            demand.sent_in = machine.boot
            times = 2 if world.faults.strike("request: sent twice") else 1
            for _ in range(times):
                if machine.up:
                    machine.guard(machine.append, demand.payload, demand.id, "operator", self._on_durable(demand))
        world.later(between(self._pace, 0.1, 1.0), f"look {demand.id}", lambda: self._send(demand))

    def _on_durable(self, demand: Demand) -> Callable[[int], None]:
        def done(position: int) -> None:
            self._machine.watch.acknowledge(demand.id, position)
            demand.done = True

        return done

    def resume_halted(self) -> None:
        """The operator lets every halted actor decide again."""
        halted: dict[str, None] = {}
        for event in self._machine.watch.history:
            if isinstance(event.data, ActorHalted):
                halted[event.data.name] = None
            elif isinstance(event.data, ActorResumed):
                halted.pop(event.data.name, None)
        for name in halted:
            self.demand(ActorResumed(name=name))

    # --- performers ----------------------------------------------------------------------------------------------

    def perform(self, running: Running) -> None:
        """Perform an effect, more or less."""
        world = self._world
        how = self._performances.get(type(running.event.data), self._usual)
        if how.sure and how.perform is not None:
            how.perform(running, 0.0)
            return
        if self.pla_world is not None and self.pla_world.perform(running):
            return
        if world.faults.strike("effect: hangs") or (how.hangs and world.faults.strike(how.hangs)):
            return
        seconds = between(self._pace, 0.0, 1.5)
        if world.faults.strike("effect: answers late"):
            seconds = between(self._pace, 4.0, 40.0)
        took = (how.perform or self._perform)(running, seconds)
        if took is not None and world.faults.strike(how.twice):
            self._again(running, took)

    def _perform(self, running: Running, seconds: float) -> float:
        self._world.later(seconds, "performed", lambda: self._machine.answer(running, self._outcome(running)))
        return seconds

    def _again(self, running: Running, seconds: float) -> None:
        """Some time after it has answered, the performer answers a second time."""
        self._world.later(
            seconds + between(self._pace, 0.0, 2.0), "performed twice",
            lambda: self._machine.answer(running, self._outcome(running), "second"),
        )

    def _outcome(self, running: Running) -> msgspec.Struct:
        event = running.event
        if self._world.faults.strike("effect: fails"):
            return EffectFailed(request=event.position, error="OSError", place="simulated")
        return self._performances.get(type(event.data), self._usual).outcome(event)

    def _done(self, event: Event) -> Done:
        return Done(n=getattr(event.data, "n", 0), text=f"token: {self._secret}")
