"""The laws of a world of machines, looked at whenever something starts, ends or is acknowledged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pmagent.contracts.payload import OutwardRequest, effect_of
from pmagent.events.event import Event
from pmagent.events.lease import SECOND
from pmagent.replay.machines.database import ROOT, Entry
from pmagent.replay.simulation.world import require

if TYPE_CHECKING:
    from pmagent.replay.machines.daemon import Daemon
    from pmagent.replay.machines.process import Box, Process
    from pmagent.replay.machines.world import World


HELD_WITHIN: Final = 45 * SECOND
"""So long after a pause a holder whose lease is live has seen to it that nobody claims what it offers."""


class Laws:
    """The knowledge of the whole world, and the laws."""

    def __init__(self, world: World) -> None:
        self._world = world
        world.outside = self._outside
        self.daemons: list[Daemon] = []
        self.acknowledged_ids: set[str] = set()
        self._started: set[str] = set()
        self._lost: set[str] = set()
        self._known: dict[str, Entry] = {}
        """Of each host, the last end of the log that was acknowledged there."""
        self.elsewhere: dict[int, Event] = {}
        """Attempts by position, as the newest holder offers them."""

    def started(self, daemon: Daemon) -> None:
        """A process of a daemon begins."""
        self.daemons.append(daemon)

    def gone(self, daemon: Daemon, _seconds: float) -> None:
        """It has ended."""
        self.daemons.remove(daemon)

    def acknowledged(self, daemon: Daemon, events: Sequence[Event]) -> None:
        """A batch counts as durable."""
        self._known[daemon.host.name] = daemon.end_of_log
        for event in events:
            self.acknowledged_ids.add(event.id)
            self._world.note(daemon.name, event.position, event.id)
            if event.causation:
                effect = event.id.split()[0]
                box = self._world.boxes.get(effect)
                require(box is None or not box.acts or self._world.lossy, f"{effect} has ended, and its box acts on")

    def recovers(self, daemon: Daemon) -> None:
        """A new holder begins to judge what is open."""
        self._alone(daemon, "judges")
        known = self._known.get(daemon.host.name, ROOT)
        require(daemon.end_of_log.holds(known), f"{daemon.name} acts, and events are lost")

    def accepted(self) -> None:
        """An operator accepts that events are lost."""
        self._known.clear()

    def starts(self, daemon: Daemon, event: Event) -> None:
        """An effect starts in a box of the daemon's host."""
        self._world.note(daemon.name, "starts", event.id)
        self._alone(daemon, "starts something")
        held = daemon.ledger.paused and isinstance(event.data, OutwardRequest)
        require(not held, f"{event.id} starts, and effects are paused")
        self._once(event)
        require(
            daemon.lease.phase in ("acting", "lapsed") and daemon.now() < daemon.lease.term.ends,
            f"{event.id} starts without a live lease",
        )

    def begins_elsewhere(self, worker: Process, position: int, claim: str, asked: int) -> str:
        """A box starts on a worker's host, for a claim that was asked for at the true time ``asked``; the effect's
        key."""
        event = self.elsewhere[position]
        for daemon in self.daemons:
            held = daemon.lease.live(daemon.now()) and daemon.held_at and daemon.held_at + HELD_WITHIN < asked
            require(not held, f"{event.id} is claimed, and effects have been paused for long")
        self._world.note(worker.name, "starts", event.id, claim)
        if not self._world.lossy:  # a claim may be among what was lost
            self._once(event)
            require(event.id not in self._lost, f"{event.id} starts, and its outcome was told already")
        return event.id

    def concluded(self, daemon: Daemon, event: Event) -> None:
        """An effect's end is decided, perhaps by somebody who is deposed: then it never enters the log."""
        self._world.note(daemon.name, "ends", event.id)

    def ended_elsewhere(self, event: Event, how: str) -> None:
        """An attempt is over elsewhere."""
        lost = event.id in self._lost and not self._world.lossy
        require(how != "done" or not lost, f"{event.id} was lost, and its result enters the log")
        if how != "done":
            self._lost.add(event.id)
        begun = event.id in self._started and not self._world.lossy
        require(how != "withdrawn" or not begun, f"{event.id} was withdrawn, and had begun")

    def _once(self, event: Event) -> None:
        effect = effect_of(event.data)
        assert effect is not None
        box = self._world.boxes.get(event.id)
        require(box is None or not box.acts, f"{event.id} starts and acts already")
        twice = event.id in self._started and not effect.repeatable and not self._world.lossy
        require(not twice, f"{event.id} starts twice")
        self._started.add(event.id)

    def _alone(self, daemon: Daemon, what: str) -> None:
        if self._world.lossy:  # the other may hold the same epoch, in a history that is lost
            return
        for box in self._world.boxes.values():
            alone = box.owner is daemon or not (box.here and box.acts)
            require(alone, f"{daemon.name} {what}, and {box.owner.name} still acts: {box.key}")
        for other in self.daemons:
            alone = other is daemon or not other.lease.live(other.now())
            require(alone, f"{daemon.name} {what}, and {other.name} may act")

    def _outside(self, box: Box) -> None:
        self._world.faults.note(("" if box.here else "elsewhere: ") + "ended from outside at the lease's end")
