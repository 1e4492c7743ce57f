"""Runs seeds: a safety phase with faults, then the faults stop and everything must come to an end."""

from __future__ import annotations

import gc
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from pmagent.actors.areas import AREAS
from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.area import load
from pmagent.actors.core.snapshot import export_engine
from pmagent.actors.registry import all_actors
from pmagent.events.errors import PmagentError
from pmagent.events.event import Event
from pmagent.events.segments import segment_firsts
from pmagent.replay.areas.guests import GUEST_CHANCES, GUEST_CONSEQUENCES, Guests
from pmagent.replay.areas.pla.faults import ENDING_CHANCES, PLA_CHANCES, PLA_CONSEQUENCES, WHERE_LONG, WHILE_TYPING
from pmagent.replay.areas.pla.forger import Forger
from pmagent.replay.areas.pla.halting import FRAIL, Fatal, Frail
from pmagent.replay.areas.pla.world import PlaWorld
from pmagent.replay.simulation.altered import Alteration
from pmagent.replay.simulation.borders import Borders, calm
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.consequences import consequences
from pmagent.replay.simulation.disk import Crashed
from pmagent.replay.simulation.environment import Environment
from pmagent.replay.simulation.faults import FOREIGN_CHANCES, FOREIGN_CONSEQUENCES, Faults
from pmagent.replay.simulation.invariants import Documents
from pmagent.replay.simulation.machine import FOLDER, Machine
from pmagent.replay.simulation.pausing import PAUSE_CHANCES, PAUSE_CONSEQUENCES, Switch
from pmagent.replay.simulation.remembering import COSTLY, Decided, Remembering, remembers_nothing
from pmagent.replay.simulation.tripwires import tripwires
from pmagent.replay.simulation.workload import HANDS, Fragile, Hand
from pmagent.replay.simulation.world import Others, Violation, World, require

SAFETY_SECONDS: Final = 60.0
BORDERED: Final = 0.25
"""So large a part of the seeds has faults at the engine's borders."""
LIVENESS_SECONDS: Final = 7200.0
STEPS_MAX: Final = 50_000

_RESTS: Final = [load(rests) for area in AREAS for rests in area.rests]

_REAL: Final = [type(actor) for actor in all_actors()]
"""The classes of the real actors, in their order."""

_OFTEN: Final = (
    "crash: process", "crash: power", "crash: in recovery", "crash: in a write", "crash: between names",
    "disk: write error", "disk: read error", "disk: sync error",
)
"""Faults that may strike at each fact. A device brings so many facts that no process would live long enough to type."""


class Load(NamedTuple):
    """How much happens in a run's first phase: demands of all kinds, others that ask for reasoning, others that have to
    do with runs of Orchestra, with configured checks, or with audits, changes of surfaces, wishes that something be
    typed, pauses of all effects, and sessions of guests."""

    demands: int
    thoughts: int
    runs: int
    checks: int
    audits: int
    changes: int
    typings: int = 0
    pauses: int = 0
    guests: int = 0


class SimResult(msgspec.Struct, frozen=True):
    """One run. ``history`` is the hash of all that happened; ``seconds`` are simulated; ``struck`` counts faults and
    what followed from them; ``starts`` are the processes that lived."""

    seed: int
    history: str
    events: int
    steps: int
    seconds: float
    starts: int
    struck: dict[str, int]


class SimSummary(msgspec.Struct, frozen=True):
    """Many runs: sums of their figures. ``failures`` say how each failed seed is run again."""

    first: int
    count: int
    events: int
    steps: int
    seconds: float
    starts: int
    struck: dict[str, int]
    failures: list[str]


class SimulationFailed(PmagentError, exit_code=70):
    """An invariant did not hold in a run; the message names the seed and how to see it again."""

    def __init__(self, seed: int | None, version: str, reason: str, options: str = "") -> None:
        again = f"pmagent sim --seed {seed} {options}".rstrip() if seed is not None else "the choices that were drawn"
        super().__init__(
            f"seed {seed}: {reason}",
            f"again, with version {version or '?'} and Python {platform.python_version()}: {again}",
        )
        self.seed = seed
        self.reason = reason


def actors(fatal: Fatal, decided: Decided | None = None) -> Sequence[AnyActor]:
    """The real actors, some of which fail on what is ``fatal`` to them, and those that give them work. Costly decisions
    are remembered in ``decided``, if there is one."""
    made: list[AnyActor] = [actor() for actor in _REAL]
    real = [Frail(actor, fatal) if actor.name in FRAIL else actor for actor in made]
    if decided is not None:
        real = [Remembering(actor, decided) if actor.name in COSTLY else actor for actor in real]
    return [*real, *map(Hand, HANDS), Fragile(), Forger()]


class Rest(NamedTuple):
    """How a run came to rest, and was found good: the hash of all that is looked at then (``_rest``), and the run's
    result."""

    sum: bytes
    result: SimResult


Rests = dict[int, Rest]
"""Of each seed."""


def simulate(
    seed: int, *, documents: Callable[[], Documents] | None = None, version: str = "",
    only: frozenset[str] | None = None, load: Load | None = None, rests: Rests | None = None,
) -> SimResult:
    """Run one seed. ``documents`` makes the projections, which are then checked too; ``only`` these faults strike;
    ``load`` is else drawn. ``rests`` are those of earlier runs: one more has to come to the same in every byte, and is
    not held to the laws a second time, except in seeds that remember nothing.

    Raises SimulationFailed.
    """
    try:
        return play(Chance(seed), seed=seed, documents=documents, only=only, load=load, rests=rests)
    except (Exception, Crashed) as error:
        raise SimulationFailed(seed, version, f"{type(error).__name__}: {error}") from error


def play(
    chance: Chance, *, seed: int = 0, documents: Callable[[], Documents] | None = None,
    only: frozenset[str] | None = None, load: Load | None = None, rests: Rests | None = None,
) -> SimResult:
    """Run with the choices of ``chance``; the rest: see ``simulate``.

    Raises Violation, or whatever the tested code raised."""
    collecting = gc.isenabled()
    gc.disable()  # finalizers must not run at moments of their own
    try:
        with tripwires():
            return _play(chance, seed, documents, only, load, {} if rests is None or remembers_nothing(seed) else rests)
    finally:
        if collecting:
            gc.enable()


def _play(
    chance: Chance, seed: int, documents: Callable[[], Documents] | None, only: frozenset[str] | None,
    load: Load | None, rests: Rests,
) -> SimResult:
    earlier = rests.get(seed)
    world = World(chance, only)
    fatal: Fatal = {}
    secret = f"hush-{chance.stream('secret').getrandbits(64):016x}"
    decided: Decided | None = None if remembers_nothing(seed) else {}
    machine = Machine(world, partial(actors, fatal, decided), documents, [secret])
    machine.watch.fatal = fatal
    machine.watch.looks = earlier is None
    world.others = Others(world.disk, FOLDER, Faults(chance, "others", only, FOREIGN_CHANCES, FOREIGN_CONSEQUENCES))
    bordered = chance.uniform("borders: at all") < BORDERED
    machine.borders = Borders(chance, only if bordered else frozenset())
    environment = Environment(world, machine, secret)
    if load is None:
        load = _load(chance)
    pla_world = _pla_world(world, machine, environment, only, secret) if load.typings else None
    if load.pauses:
        _switch(world, machine, environment, only)
    if load.guests:
        _guests(world, machine, environment, only)
    environment.plan(*load, SAFETY_SECONDS)
    world.later(0.0, "start", machine.start)
    while world.next_at < SAFETY_SECONDS and world.steps < STEPS_MAX:
        world.step()
    require(world.steps < STEPS_MAX, "too much happens in the safety phase")

    world.faults.calm()
    world.others.faults.calm()
    calm(machine, world)
    world.disk.full = False
    world.disk.crash_after = None
    environment.restore_surfaces()
    environment.resume_halted()
    environment.calm()
    if pla_world is not None:
        pla_world.calm()
        # Requests made while the machine was down reach it now, and may halt an actor once more.
        world.later(10.0, "resume", environment.resume_halted)
    while world.step():
        if world.steps >= 2 * STEPS_MAX or world.seconds >= LIVENESS_SECONDS:
            raise Violation("it does not come to an end")

    require(machine.up, "the machine is down though nothing is wrong any more")
    require(all(demand.done for demand in environment.demands), "a demand was never acknowledged")
    machine.storage.close()
    world.disk.watched = False
    for struck in (
        pla_world.struck() if pla_world is not None else {},
        *environment.struck(),
        world.others.faults.struck, machine.borders.faults.struck,
    ):  # fmt: skip
        world.faults.struck.update(struck)
    sum_ = _rest(world, machine)
    require(earlier is None or earlier.sum == sum_, "a second run comes to something else than the first")
    alteration = _check_rest(world, machine) if earlier is None else None
    require(not machine.engine.effects.open, "an effect is still open")
    for idle in _RESTS:
        idle(machine.engine.states)
    if pla_world is not None:
        pla_world.check_rested()
    result = earlier.result if earlier is not None else _result(seed, world, machine, alteration)
    if sum_ is not None:
        rests[seed] = Rest(sum_, result)
    return result


def _check_rest(world: World, machine: Machine) -> Alteration:
    """Hold log and documents to everything once the machine has come to rest. The alteration that a replay found."""
    watch = machine.watch
    alteration = Alteration(watch.history, world.chance)
    watch.check_log(machine.engine, alteration)
    watch.check_documents(machine.documents)
    watch.check_ended()
    return alteration


def _result(seed: int, world: World, machine: Machine, alteration: Alteration | None) -> SimResult:
    watch = machine.watch
    for consequence in consequences(watch.history, watch.verdicts):
        world.faults.note(consequence)
    if len(segment_firsts(world.disk, FOLDER)) > 1:
        world.faults.note("log: rolled")
    if alteration is not None and alteration.victim is not None:
        world.faults.note("replay: alteration found")
    return SimResult(
        seed, world.history(), len(watch.history), world.steps, world.seconds, machine.boot,
        dict(sorted(world.faults.struck.items())),
    )


def _rest(world: World, machine: Machine) -> bytes | None:
    """The hash of all that is looked at when a run has come to rest: what happened and how chance stands, every file,
    the durable events, what was acknowledged, and what engine and documents know. None where documents cannot tell."""
    watch, documents = machine.watch, machine.documents
    if documents is not None and documents.halted:
        return None
    knows = export_engine(machine.engine), documents.export() if documents is not None else {}
    told = world.noted(), world.chance.drawn(), world.steps, world.micros, machine.boot, world.faults.struck
    fatal = {id: sorted(names) for id, names in watch.fatal.items()}
    whole = world.disk.files(), watch.sums, watch.acknowledged, fatal, knows, told
    return sha256(msgspec.msgpack.encode(whole)).digest()


def _load(chance: Chance) -> Load:
    def some(what: str, *numbers: int) -> int:
        return numbers[int(chance.uniform(f"load: {what}") * len(numbers))]

    return Load(
        demands=some("demands", *range(5, 40)), thoughts=some("thoughts", *range(20)), runs=some("runs", *range(10)),
        checks=some("checks", *range(6)), audits=some("audits", *range(5)), changes=some("changes", *range(12)),
        typings=some("typings", 0, 0, 0, 2), pauses=some("pauses", 0, 0, 3), guests=some("guests", 0, 0, 0, 0, 4),
    )  # fmt: skip


def _pla_world(
    world: World, machine: Machine, environment: Environment, only: frozenset[str] | None, secret: str
) -> PlaWorld:
    failing = Faults(world.chance, "endings", only, ENDING_CHANCES, ())
    faults = Faults(world.chance, "pla", only, PLA_CHANCES, PLA_CONSEQUENCES)
    for often in _OFTEN:
        world.faults.chances[often] *= 0.15
    for rarer in (world.others.faults, machine.borders.faults):  # each ends a process, too
        rarer.chances = {name: 0.05 * often for name, often in rarer.chances.items()}
    if failing.strike("goal: long"):
        for often in WHILE_TYPING:
            faults.chances[often] *= 0.05
        failing.chances.update({name: ENDING_CHANCES[name] for name in WHERE_LONG if not only})
    private = f"{world.chance.stream('pla: secret').getrandbits(64):016x}"
    machine.watch.keep_out(private.encode())
    environment.pla_world = PlaWorld(
        world, machine, faults, secret, private, failing, machine.watch.fatal, environment.demand,
        environment.put_in_order,
    )  # fmt: skip
    return environment.pla_world


def _switch(
    world: World, machine: Machine, environment: Environment, only: frozenset[str] | None
) -> None:
    faults = Faults(world.chance, "pauses", only, PAUSE_CHANCES, PAUSE_CONSEQUENCES)
    environment.switch = Switch(world, machine, faults, environment.demand, environment.pending)
    if environment.pla_world is not None:
        environment.pla_world.switch = environment.switch


def _guests(
    world: World, machine: Machine, environment: Environment, only: frozenset[str] | None
) -> None:
    faults = Faults(world.chance, "guests", only, GUEST_CHANCES, GUEST_CONSEQUENCES)
    guests = environment.guests = Guests(world, machine, faults, environment.demand, environment.put_in_order)
    others = machine.watch.noticed

    def noticed(event: Event) -> None:
        others(event)
        guests.durable(event)

    machine.watch.noticed = noticed


def run_seeds(
    first: int, count: int, *, documents: Callable[[], Documents] | None = None, version: str = "",
    report: Callable[[SimResult], None] | None = None, failures_max: int = 10, load: Load | None = None,
    rests: Rests | None = None, one: Callable[[int], SimResult] | None = None,
) -> SimSummary:
    """Run ``count`` seeds from ``first`` on; ``report`` hears of each that passed; ``load`` and ``rests``: see
    ``simulate``, which ``one`` takes the place of. Ends early after ``failures_max`` failures."""
    if one is None:
        one = partial(simulate, documents=documents, version=version, load=load, rests=rests)
    results: list[SimResult] = []
    failures: list[str] = []
    gc.freeze()  # what is there already is no garbage of a run: the collector need not go through it behind each
    for seed in range(first, first + count):
        try:
            result = one(seed)
        except SimulationFailed as failed:
            failures.append(f"{failed.message}; {failed.hint}")
            if len(failures) >= failures_max:
                break
            continue
        results.append(result)
        if report is not None:
            report(result)
    gc.unfreeze()
    return summary(first, results, failures)


def summary(first: int, results: Iterable[SimResult], failures: Sequence[str]) -> SimSummary:
    """The sums of ``results``."""
    struck: Counter[str] = Counter()
    events = steps = starts = count = 0
    seconds = 0.0
    for result in results:
        struck.update(result.struck)
        events += result.events
        steps += result.steps
        starts += result.starts
        seconds += result.seconds
        count += 1
    return SimSummary(first, count, events, steps, seconds, starts, dict(sorted(struck.items())), list(failures))
