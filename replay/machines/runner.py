"""Runs seeds of the world of machines: faults first, then none, and everything must come to an end."""

from __future__ import annotations

import gc
from typing import Final

from pmagent.events.lease import SECOND
from pmagent.replay.machines.daemon import KINDS, PAUSED, RESUMED, Daemon
from pmagent.replay.machines.database import ROOT, Entry, Node
from pmagent.replay.machines.faults import TROUBLES
from pmagent.replay.machines.laws import Laws
from pmagent.replay.machines.process import RATES, Host, Process
from pmagent.replay.machines.worker import Worker
from pmagent.replay.machines.world import World
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.runner import SimResult, SimulationFailed
from pmagent.replay.simulation.world import require

UNPROMISED: Final = ("database: standby names emptied", "database: promoted by hand")
"""Faults that no promise covers: few seeds have them, since many laws do not hold behind it."""

SAFETY: Final = 120 * SECOND
LIVENESS: Final = 600 * SECOND
STEPS_MAX: Final = 100_000


class Play:
    """One run."""

    def __init__(self, chance: Chance, only: frozenset[str] | None) -> None:
        world = self.world = World(chance, only, SAFETY)
        self.laws = Laws(world)
        chances = world.chances
        if chances.random() < 0.85:
            world.faults.chances.update(dict.fromkeys(UNPROMISED, 0.0))
        self._troubles = [name for name in TROUBLES if world.faults.chances[name]]
        wrong = world.faults.strike("clock: wrong rate")
        daemons = ("a", "b", "c")[: chances.randint(2, 3)]
        workers = ("v", "w")[: chances.randint(1, 2)]
        self._hosts = {
            name: Host(world, name, chances.choice(RATES) if wrong else 1.0, chances.randrange(1, 10**12))
            for name in (*daemons, *workers)
        }
        self._processes: dict[str, Process] = {}
        self.starts = 0
        self._down: set[str] = set()
        self._demands: dict[str, int] = {}
        self._switches = 0
        for name in self._hosts:
            world.at(world.span(0, 3), self._start, name)
        for number in range(chances.randint(3, 14)):
            world.at(world.span(1, SAFETY / SECOND - 10), self._demand, f"d{number}", chances.randrange(len(KINDS)))
        world.at(5, self._trouble)

    # --- processes -----------------------------------------------------------------------------------------------

    def _start(self, name: str) -> None:
        """Start what belongs on a host, unless it lives."""
        living = self._processes.get(name)
        if name in self._down or (living is not None and living.alive):
            return
        self.starts += 1
        kind = Worker if name in "vw" else Daemon
        self._processes[name] = kind(self.world, self._hosts[name], f"{name}{self.starts}", self.laws)

    def _watch(self) -> None:
        """Start what has ended, as systemd does."""
        for name in self._hosts:
            self._start(name)

    def _demand(self, id: str, kind: int) -> None:
        """Ask for an effect until it is acknowledged."""
        self._demands[id] = kind
        if id in self.laws.acknowledged_ids:
            return
        for daemon in self.laws.daemons:
            daemon.run(daemon.demand, id, KINDS[kind])
        self.world.at(self.world.span(4, 12), self._demand, id, kind)

    # --- trouble -------------------------------------------------------------------------------------------------

    def _trouble(self) -> None:
        world = self.world
        if world.now >= SAFETY - 5 * SECOND:
            return
        for name in self._troubles:
            if world.faults.strike(name) and not self._strike(name):
                world.faults.struck[name] -= 1
        self._watch()
        world.at(world.span(2, 9), self._trouble)

    def _strike(self, name: str) -> bool:
        """Let it happen, if it can."""
        world, chances = self.world, self.world.chances
        kind, _, what = name.partition(": ")
        if kind == "database":
            return self._database(what)
        if kind == "effects":
            for daemon in self.laws.daemons:
                if what == "paused":
                    self._switches += 1
                    daemon.run(daemon.switch, PAUSED, f"p{self._switches}")
                    world.at(world.span(5, 110), self._resume)
                else:
                    daemon.run(daemon.cancel, f"c{world.steps}")
            return True
        worker = "worker" in what
        names = [one for one in self._hosts if (one in "vw") is worker or kind in ("host", "clock")]
        if not names:
            return False
        name = chances.choice(names)
        holders = [daemon.host.name for daemon in self.laws.daemons if daemon.lease.epoch]
        if holders and not worker and chances.random() < 0.6:
            name = holders[0]
        host, process = self._hosts[name], self._processes.get(name)
        if kind == "clock":
            host.set_wall(chances.randint(-86_400, 86_400) * SECOND)
            return True
        if kind == "network":
            primary = [node.number for node in world.primaries]
            host.cut = {0, 1, 2} if "everything" in what else set(primary)
            world.at(world.span(3, 70), host.cut.clear)
            world.at(world.span(1, 15), self._notice, host)
            return True
        if process is None or not process.alive:
            return False
        self._process(what, process)
        return True

    def _notice(self, host: Host) -> None:
        """Servers give up sessions of a host that they do not reach."""
        process = self._processes.get(host.name)
        for node in self.world.nodes:
            if process is not None and node.number in host.cut and node.session == process.name:
                node.session = ""

    def _resume(self) -> None:
        self._switches += 1
        for daemon in self.laws.daemons:
            daemon.run(daemon.switch, RESUMED, f"p{self._switches}")

    def _process(self, what: str, process: Process) -> None:
        world = self.world
        if what == "suspended":
            seconds = world.span(5, 100)
            process.host.asleep = world.now + int(seconds * SECOND)
            process.freeze(seconds)
        elif what.endswith("stopped"):
            process.freeze(world.span(1, 100))
        elif what.endswith("asked to end") and isinstance(process, Daemon):
            process.run(process.leave)
        else:
            power = what == "power lost"
            if isinstance(process, Daemon):
                process.end(world.span(2, 10) if power else 0.01)
            else:
                process.die()
            if power:
                world.lose_boxes(process.host)
                self._down.add(process.host.name)
                world.at(world.span(3, 60), self._down.discard, process.host.name)
        world.note(process.name, what)

    def _database(self, what: str) -> bool:
        world = self.world
        node = world.leader
        if not node.up:
            return False
        standbys = [one for one in world.nodes if one.follows is node and one.up]
        world.note(node.number, what)
        if what.startswith("a commit's wait"):
            for one in world.primaries:  # the next one
                one.troubled = "terminate" if "terminated" in what else "cancel"
        elif what == "standby names emptied":
            world.lossy = True
            node.empty_names()
            world.at(world.span(1, 20), self._restore_names, node)
        elif what.startswith("a standby"):
            self._standby(what, standbys)
        elif what == "crashes and starts again":
            node.crash()
            world.at(world.span(0.5, 5), world.restart, node)
        elif what == "primary frozen, another promoted":
            if len(standbys) < 2:
                return False
            world.fail_over(node)
            world.at(world.span(5, 60), world.demote, node)
        else:
            by_hand = what == "promoted by hand"
            world.lossy = world.lossy or by_hand
            node.crash()
            world.at(world.span(1, 20), world.fail_over, node, by_hand)
            world.at(world.span(10, 80), world.restart, node)
        return True

    def _standby(self, what: str, standbys: list[Node]) -> None:
        world = self.world
        for node in standbys and [world.chances.choice(standbys)]:
            if what == "a standby lags":
                node.lags = world.now + int(world.span(3, 40) * SECOND)
            else:
                node.crash()
                world.at(world.span(3, 60), world.restart, node)

    def _restore_names(self, node: Node) -> None:
        node.names = True

    # --- the end -------------------------------------------------------------------------------------------------

    def calm(self) -> None:
        """From now on everything works."""
        world = self.world
        world.faults.calm()
        self._down.clear()
        for host in self._hosts.values():
            host.cut.clear()
        world.heal()
        if world.lossy:
            self.laws.accepted()
            for host in self._hosts.values():
                host.known = ROOT
        self._watch()
        self._tend()

    def _tend(self) -> None:
        self._watch()
        self._resume()
        self.world.at(8, self._tend)

    def rested(self) -> bool:
        """Whether everything has come to an end."""
        if not all(id in self.laws.acknowledged_ids for id in self._demands):
            return False
        acting = [daemon for daemon in self.laws.daemons if daemon.lease.epoch]
        return len(acting) == 1 and acting[0].lease.phase == "acting" and not acting[0].ledger.open

    def check(self) -> Entry:
        """Hold the log of the newest primary to what was acknowledged; its end."""
        end = self.world.leader.visible.log
        ids: set[str] = set()
        for position, event in enumerate(end.events_from_first(), 1):
            require(event.position == position, f"event {event.id} is not at its position")
            require(event.id not in ids, f"{event.id} is in the log twice")
            ids.add(event.id)
        lost = self.laws.acknowledged_ids - ids
        require(self.world.lossy or not lost, f"acknowledged, and not in the log: {sorted(lost)}")
        return end


def play(chance: Chance, seed: int, only: frozenset[str] | None = None) -> SimResult:
    """Run with the choices of ``chance``. Raises Violation, or whatever the tested code raised."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _play(Play(chance, only), seed)
    finally:
        if collecting:
            gc.enable()


def _play(run: Play, seed: int) -> SimResult:
    world = run.world
    world.run(SAFETY)
    run.calm()
    until = world.now + LIVENESS
    while not run.rested():
        require(world.now < until and world.steps < STEPS_MAX, "it does not come to rest")
        world.run(world.now + 5 * SECOND)
    end = run.check()
    struck = {name: count for name, count in sorted(world.faults.struck.items()) if count}
    return SimResult(seed, world.history(), end.position, world.steps, world.now / SECOND, run.starts, struck)


def simulate(seed: int, *, version: str = "", only: frozenset[str] | None = None) -> SimResult:
    """Run one seed; ``only`` these faults strike. Raises SimulationFailed."""
    try:
        return play(Chance(seed), seed, only)
    except Exception as error:
        raise SimulationFailed(seed, version, f"{type(error).__name__}: {error}", "--part machines") from error
