"""Hosts with their clocks, processes that may be stopped anywhere, and boxes in which effects act."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pmagent.events.lease import SECOND
from pmagent.replay.machines.database import ROOT, STATEMENT_SECONDS, Answer, Entry, Node, Statement

if TYPE_CHECKING:
    from pmagent.replay.machines.world import World

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
            return

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
        if self.world.faults.strike("process: stopped between two statements"):
            self.pause(self.world.span(1, 60))
        _Call(self, self._server(), then).send(row, statement, read)

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


class _Call:
    """A statement on its way, and its answer."""

    __slots__ = ("_from", "_node", "_pending", "_then")

    def __init__(self, process: Process, node: Node, then: Callable[[Answer | None], None]) -> None:
        self._from = process
        self._node = node
        self._then = then
        self._pending = True

    def send(self, row: int, statement: Statement | None, read: int) -> None:
        """Let the network have it."""
        world = self._from.world
        if self._node.number in self._from.host.cut or world.faults.strike("network: request lost"):
            self._unanswered()
        else:
            world.at(world.span(0.001, 0.05), self._arrive, row, statement, read)

    def _arrive(self, row: int, statement: Statement | None, read: int) -> None:
        node, world = self._node, self._from.world
        if not node.up or not node.primary:
            world.at(0.01, self._from.run, self._answered, None)
        elif statement is None:
            self._reply(node.read(read))
        else:
            world.expect(lambda: self._from.run(self._answered, None))
            node.write(row, statement, self._reply)

    def _reply(self, answer: Answer | None) -> None:
        world, strike = self._from.world, self._from.world.faults.strike
        if answer is None or self._node.number in self._from.host.cut or strike("network: answer lost"):
            self._unanswered()
        elif strike("network: answer late"):
            world.at(world.span(10.5, 20), self._from.run, self._then, answer)
            self._unanswered()
        else:
            world.at(world.span(0.001, 0.05), self._from.run, self._answered, answer)
            if strike("network: answer doubled"):
                world.at(world.span(0.06, 30), self._from.run, self._then, answer)

    def _unanswered(self) -> None:
        world = self._from.world
        world.at(world.span(0.1, STATEMENT_SECONDS), self._from.run, self._answered, None)

    def _answered(self, answer: Answer | None) -> None:
        if self._pending:
            self._pending = False
            if answer is None:
                self._from.other_server()
            self._then(answer)


class Box:
    """The act of an effect, outside of any process: a sandbox under a watchdog of its own, or an armed device."""

    def __init__(
        self, owner: Process, key: str, until: int, seconds: float, ended: Callable[[str], None], *, here: bool
    ) -> None:
        self.owner = owner
        self.attended = False
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
