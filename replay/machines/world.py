"""The calendar and the servers of a world of machines."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

import msgspec

from pmagent.events.lease import SECOND, Head
from pmagent.replay.machines.database import ROOT, STATEMENT_SECONDS, Node, State
from pmagent.replay.machines.faults import machine_faults
from pmagent.replay.machines.process import Box, Host
from pmagent.replay.simulation.chance import Chance
from pmagent.replay.simulation.world import require

LEASE: Final = 30 * SECOND
POLL: Final = 5 * SECOND

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
        if not self._expected:
            self.at(STATEMENT_SECONDS, self._sweep)
        self._expected.append((self.now + int(STATEMENT_SECONDS * SECOND), late))

    def _sweep(self) -> None:
        while self._expected and self._expected[0][0] <= self.now:
            self._expected.popleft()[1]()
        if self._expected:
            self.put(max(self._expected[0][0], self.now + 2 * SECOND), self._sweep)

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
                if other.lags <= self.now and self._pace() < 0.7:
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
            node.names, node.lags = True, 0
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
