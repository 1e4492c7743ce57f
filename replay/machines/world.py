"""The calendar, the hosts, the network and the servers of a world of machines, and boxes in which effects act."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import msgspec

from pmagent.actors.core.lease import SECOND, Head
from pmagent.replay.machines.database import ROOT, STATEMENT_SECONDS, Answer, Entry, Node, State, Statement
from pmagent.replay.machines.faults import machine_faults
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.world import require

LEASE: Final = 30 * SECOND
POLL: Final = 5 * SECOND
RATES: Final = (0.9535, 1.0485)
"""Clocks go this wrong at most: two of them differ by less than a tenth."""


class Killed(Exception):
    """The process has been killed while it was stopped."""


class Host:
    """A machine, with a clock of its own."""

    def __init__(self, world: World, name: str, rate: float, offset: int) -> None:
        self._world = world
        self._rate = rate
        self._offset = offset
        self._wrong = 0
        self.name = name
        self.asleep = 0
        """It is suspended until then (true time)."""
        self.cut: set[int] = set()
        """Servers that it does not reach."""
        self.known: Entry = ROOT
        """The last end of the log that was acknowledged here: the witness of what must be there."""

    def boottime(self) -> int:
        """CLOCK_BOOTTIME."""
        return self._offset + int(self._world.now * self._rate)

    def wall(self) -> int:
        """The clock that people set."""
        return self.boottime() + self._wrong

    def set_wall(self, wrong: int) -> None:
        """Set it wrong."""
        self._wrong = wrong

    def after(self, time: int) -> int:
        """How long it is until BOOTTIME is ``time``, in true ns."""
        return max(0, int((time - self._offset) / self._rate) + 1 - self._world.now)


class Process:
    """A process on a host. It may be stopped (SIGSTOP) between two events, or in the midst of its code."""

    def __init__(self, world: World, host: Host, name: str) -> None:
        self.world = world
        self.host = host
        self.name = name
        self.alive = True
        self._stopped = 0
        self._backlog: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._node = world.chances.randrange(len(world.nodes))
        self._timer = self._timer_due = -1

    def run(self, action: Callable[..., None], *arguments: Any) -> None:
        """Do something in the process, if it lives; when it goes on, if it is stopped."""
        if not self.alive:
            return
        if self._stopped:
            self._backlog.append((action, arguments))
            return
        try:
            action(*arguments)
        except Killed:
            pass

    def pause(self, seconds: float) -> None:
        """Be stopped in the midst of what it does: everybody else goes on meanwhile."""
        self._stopped += 1
        self.world.run(self.world.now + int(seconds * SECOND))
        self._resume()
        if not self.alive:
            raise Killed

    def freeze(self, seconds: float) -> None:
        """Be stopped between two events."""
        self._stopped += 1
        self.world.at(seconds, self._resume)

    def _resume(self) -> None:
        self._stopped -= 1
        if not self._stopped:
            backlog, self._backlog = self._backlog, []
            if backlog and self.world.chances.random() < 0.3:
                self.world.chances.shuffle(backlog)  # timers before answers, or the other way
            for action, arguments in backlog:
                self.world.at(0, self.run, action, *arguments)

    def now(self) -> int:
        """The time by which it counts leases."""
        return self.host.boottime()

    def later(self, due: int, action: Callable[[], None]) -> None:
        """Call ``action``, the process's one timer, when BOOTTIME is ``due`` at the latest."""
        if due == self._timer_due and self._timer > self.world.now:
            return
        at = self.world.now + self.host.after(due)
        self._timer_due = due
        if self._timer <= self.world.now or at < self._timer:
            self._timer = at
            self.world.put(at, self.run, self._timed, at, action)

    def _timed(self, at: int, action: Callable[[], None]) -> None:
        if at == self._timer:
            action()

    def ask(self, row: int, statement: Statement | None, then: Callable[[Answer | None], None], read: int = 0) -> None:
        """Send a statement to the primary, as far as this process knows; None for a read. ``then`` gets the answer, or
        None if there is none; a second one may follow."""
        world, strike = self.world, self.world.faults.strike
        if strike("process: stopped between two statements"):
            self.pause(world.span(1, 60))
        node = self._server()
        pending = True

        def reply(answer: Answer | None) -> None:
            if answer is None or node.number in self.host.cut or strike("network: answer lost"):
                unanswered()
                return
            if strike("network: answer late"):
                world.at(world.span(10.5, 20), self.run, then, answer)
                unanswered()
                return
            world.at(world.span(0.001, 0.05), self.run, answered, answer)
            if strike("network: answer doubled"):
                world.at(world.span(0.06, 30), self.run, then, answer)

        def answered(answer: Answer | None) -> None:
            nonlocal pending
            if pending:
                pending = False
                if answer is None:
                    self.other_server()
                then(answer)

        def unanswered() -> None:
            world.at(world.span(0.1, STATEMENT_SECONDS), self.run, answered, None)

        def arrive() -> None:
            if not node.up or not node.primary:
                world.at(0.01, self.run, answered, None)
            elif statement is None:
                reply(node.read(read))
            else:
                world.expect(lambda: self.run(answered, None))
                node.write(row, statement, reply)

        if node.number in self.host.cut or strike("network: request lost"):
            unanswered()
        else:
            world.at(world.span(0.001, 0.05), arrive)

    def _server(self) -> Node:
        """The first server, from the last one on, that says that it takes writes."""
        nodes = self.world.nodes
        for _ in nodes:
            node = nodes[self._node]
            if node.up and node.primary and node.number not in self.host.cut:
                break
            self.other_server()
        return nodes[self._node]

    def other_server(self) -> None:
        """Ask another server next time."""
        self._node = (self._node + 1) % len(self.world.nodes)

    def session(self) -> None:
        """Hold the lock of the log's holder, on the server that it is connected with."""
        node = self.world.nodes[self._node]
        if node.up and node.primary:
            node.session = self.name

    def die(self, seconds: float = 0.01) -> None:
        """End; the servers notice ``seconds`` later."""
        self.alive = False

        def noticed() -> None:
            for node in self.world.nodes:
                if node.session == self.name:
                    node.session = ""

        self.world.at(seconds, noticed)


class Box:
    """What an effect does, outside of any process: a sandbox under a watchdog of its own, or an armed device."""

    def __init__(
        self, owner: Process, key: str, until: int, seconds: float, ended: Callable[[str], None], *, here: bool
    ) -> None:
        self.owner = owner
        self.here = here
        """Whether the daemon that holds the log makes it."""
        self.key = key
        self.until = until
        self._ends = owner.world.now + int(seconds * SECOND)
        self._ended = ended
        owner.world.boxes[key] = self
        self._check()

    def _check(self) -> None:
        world, host = self.owner.world, self.owner.host
        if host.asleep > world.now:
            world.put(host.asleep, self._look)
            return
        left = host.after(self.until)
        if not left:
            self.end("killed")
            world.outside(self)
        elif world.now >= self._ends:
            self.end("done")
        else:
            world.put(world.now + min(left, self._ends - world.now), self._look)

    @property
    def acts(self) -> bool:
        """Whether it does anything: its host is awake, and its end has not come."""
        host = self.owner.host
        return host.asleep <= self.owner.world.now and host.boottime() < self.until

    def _look(self) -> None:
        if self.owner.world.boxes.get(self.key) is self:
            self._check()

    def end(self, how: str = "killed") -> None:
        """It acts no more."""
        world = self.owner.world
        if world.boxes.get(self.key) is self:
            del world.boxes[self.key]
            world.at(0.01, self.owner.run, self._ended, how)


class World:
    """Everything of one run. ``now`` is true time in ns; ``calm_at``: when the faults stop."""

    def __init__(self, chance: Chance, only: frozenset[str] | None, calm_at: int) -> None:
        self.faults = machine_faults(chance, only)
        self.chances = chance.stream("machines")
        self._pace = chance.stream("pace").random
        self.now = self.steps = 0
        self.calm_at = calm_at
        self.healed = False
        self._calendar: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._entries = 0
        self.notes: list[Any] = []
        self._expected: deque[tuple[int, Callable[[], None]]] = deque()
        self.at(4, self._sweep)
        first = State(None, 1, Head(0, "", 0, released=True, lease=LEASE), ROOT, {})
        self.nodes = [Node(number, first, self._replicate) for number in range(3)]
        self.nodes[0].primary = True
        for node in self.nodes:
            node.acknowledged = self._acknowledged
            if node.number:
                node.follows = self.nodes[0]
        self.boxes: dict[str, Box] = {}
        """Boxes that act now, by the effect."""
        self.outside: Callable[[Box], None] = lambda _: None
        self.durable: State = first
        """The newest acknowledged commit."""
        self.lossy = False
        """Whether something was done to the database that no promise covers."""
        self.leader = self.nodes[0]
        """The server that the agents of all servers hold for the primary."""

    def put(self, at: int, action: Callable[..., None], *arguments: Any) -> None:
        """Do something at a true time."""
        self._entries += 1
        heapq.heappush(self._calendar, (at, self._entries, action, arguments))

    def at(self, seconds: float, action: Callable[..., None], *arguments: Any) -> None:
        """Do something so much later."""
        self._entries += 1
        heapq.heappush(self._calendar, (self.now + int(seconds * SECOND), self._entries, action, arguments))

    def expect(self, late: Callable[[], None]) -> None:
        """Call ``late`` when a statement that is sent now must have been answered."""
        self._expected.append((self.now + int(STATEMENT_SECONDS * SECOND), late))

    def _sweep(self) -> None:
        while self._expected and self._expected[0][0] <= self.now:
            self._expected.popleft()[1]()
        self.at(4, self._sweep)

    def span(self, low: float, high: float) -> float:
        """Any time span between two (seconds)."""
        return low + (high - low) * self._pace()

    def run(self, until: int) -> None:
        """Let everything happen that is due until then."""
        calendar, pop = self._calendar, heapq.heappop
        while calendar and calendar[0][0] <= until:
            at, _, action, arguments = pop(calendar)
            if at > self.now:
                self.now = at
            self.steps += 1
            action(*arguments)
        self.now = max(self.now, until)

    def note(self, *what: Any) -> None:
        """Put something that happened into the history."""
        self.notes.append((self.now, *what))

    def history(self) -> str:
        """SHA-256 of everything that happened."""
        return sha256(msgspec.msgpack.encode((self.notes, self.now, self.steps, self._pace()))).hexdigest()

    # --- servers -------------------------------------------------------------------------------------------------

    @property
    def primaries(self) -> list[Node]:
        """The servers that take writes."""
        return [node for node in self.nodes if node.up and node.primary]

    def _replicate(self, node: Node) -> None:
        if node.troubled:
            self.at(0, self._trouble, node, node.troubled == "terminate")
            node.troubled = ""
        self.at(self.span(0.001, 0.03), self._ship, node)

    def _trouble(self, node: Node, terminate: bool) -> None:
        if node.waiting:
            node.cancel(terminate=terminate)

    def _ship(self, node: Node) -> None:
        """Standbys of ``node`` take what it has, each sooner or later."""
        if not node.up or not node.primary:
            return
        behind = False
        for other in self.nodes:
            if other.follows is node and other.up and other.local is not node.local:
                if self._pace() < 0.7:
                    other.local = other.visible = node.local
                    other.timeline = node.timeline
                    node.replicated(node.local)
                else:
                    behind = True
        if behind:
            self.at(self.span(0.01, 0.5), self._ship, node)

    def _acknowledged(self, state: State) -> None:
        if not self.lossy:
            require(state.holds(self.durable) or self.durable.holds(state), "two histories are acknowledged")
        if state.timeline > self.durable.timeline or state.number > self.durable.number:
            self.durable = state

    def restart(self, node: Node) -> None:
        """A server comes up again: as a standby, if there is another primary by now."""
        node.up = True
        if self.leader is not node:
            node.follow(self.leader)
        node.start()
        self._ship(self.leader)

    def demote(self, node: Node) -> None:
        """The agent of a frozen primary wakes up, and finds another one."""
        if node.up and node.primary and self.leader is not node:
            node.follow(self.leader)
            self._ship(self.leader)

    def heal(self) -> None:
        """All servers are up, and one of them is the primary, for good."""
        self.healed = True
        for node in (self.leader, *self.nodes):
            node.names = True
            if not node.up:
                self.restart(node)
            elif node is not self.leader and node.follows is not self.leader:
                node.follow(self.leader)
        self._ship(self.leader)

    def lose_boxes(self, host: Host) -> None:
        """The power is gone, and with it what acts on the host."""
        for box in [*self.boxes.values()]:
            if box.owner.host is host:
                box.end()

    def fail_over(self, old: Node, by_hand: bool = False) -> None:
        """Promote the standby that has most, once both others of the quorum are seen; by hand: any."""
        others = [node for node in self.nodes if node is not old and node.up]
        if self.leader is not old or not others or self.healed:
            return
        if not by_hand and len(others) < 2:
            self.at(2, self.fail_over, old)
            return
        best = max(others, key=lambda one: (one.local.timeline, one.local.number))
        if by_hand:
            best = min(others, key=lambda one: (one.local.timeline, one.local.number))
        best.promote(old.timeline + 1)
        self.leader = best
        for node in others:
            if node is not best:
                node.follow(best)
        self.note("promoted", best.number)
        if not best.local.holds(self.durable):
            require(self.lossy, "an acknowledged commit is not in the database that is promoted")
            self.durable = best.local
            self.faults.note("events lost")
        self.at(0.1, self._ship, best)
