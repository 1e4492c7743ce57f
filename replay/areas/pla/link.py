"""The host's end of the line in the simulation: the real sans-I/O link and the real exchanges, driven by the calendar
as ``actors/pla/line/holding.py`` drives them on a port."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from pmagent.actors.pla.wire.conversations import ALIVE_SECONDS, Conversations
from pmagent.actors.pla.wire.exchanges import exchange, goodbye, without_device
from pmagent.actors.pla.wire.host import HostLink
from pmagent.actors.pla.wire.reports import Reporter
from pmagent.contracts.checking import check
from pmagent.contracts.hid import HidArmRequested, HidCommitRequested, HidPingRequested, HidPrepareRequested
from pmagent.contracts.payload import Payload
from pmagent.contracts.pla import CONTRACT_VERSION, Action
from pmagent.contracts.pla_schemas import CONTRACT_HASH
from pmagent.replay.areas.pla.cable import GARBAGE, Cable
from pmagent.replay.areas.pla.device import Device
from pmagent.replay.areas.pla.ending import Ending
from pmagent.replay.simulation.chance import between
from pmagent.replay.simulation.faults import Faults
from pmagent.replay.simulation.machine import Machine
from pmagent.replay.simulation.running import Running
from pmagent.replay.simulation.world import World, require

PRESSING: Final = (HidArmRequested, HidPrepareRequested, HidCommitRequested)
"""Requests after which the device is disarmed when nobody waits for their outcome any more."""
_NUMBERS: Final = 100_000
"""Requests of one link at most."""


class HostSide:
    """Opens the line whenever a daemon lives and the device is plugged in. ``plain`` gives an action by its digest as
    long as it is in memory."""

    def __init__(
        self, world: World, faults: Faults, machine: Machine, device: Device,
        plain: Callable[[str], Action | None], ending: Ending,
    ) -> None:  # fmt: skip
        self._world = world
        self._faults = faults
        self._random = world.chance.stream("pla: host")
        self._machine = machine
        self._device = device
        self._plain = plain
        self._ending = ending
        self._cable = Cable(world, faults)
        self._link: HostLink | None = None
        self._conversations: Conversations | None = None
        self._boot = 0
        self._opening = 0
        self._impostor = False
        self._ticking = 0
        self._reporter = Reporter()
        self._reported_at = 0.0
        self._facts = 0
        self._running: dict[int, Running] = {}
        self._hangs_until = self._alive_at = 0.0
        self.resting = False
        self.losing = 0
        """So many disarms are lost."""
        self._behind: Running | None = None
        """An order that is given to the link with the next ping, which is lost."""
        self.waits: Callable[[], None] = lambda: None
        """Called when an order waits in the link."""
        device.send = self._from_device
        device.connected = lambda: self.holds and not self._impostor
        device.left = self._unplugged

    @property
    def holds(self) -> bool:
        """Whether this process holds the line open."""
        return self._link is not None and self._machine.up and self._machine.boot == self._boot

    def hang(self) -> None:
        """The engine does not answer for a while, and the line goes on."""
        seconds = between(self._random, 0.2, 6.0)
        self._hangs_until = max(self._hangs_until, self._world.seconds + seconds)
        self._world.later(seconds + 0.000001, "answers again", self._pump)

    # --- the source beside the daemon -----------------------------------------------------------------------------

    def look(self) -> None:
        """Open the line, when there is one and nobody holds it; look again in a while."""
        if self._link is not None and not self.holds:  # the process is gone, and its end of the line with it
            self._let_go()
        machine = self._machine
        daemon = machine.up and machine.surface == "daemon"
        if self._link is None and daemon and self._device.plugged and not self.resting:
            self._open()
        if not self.resting:
            self._world.later(between(self._random, 0.2, 0.8), "link", self.look)

    def _open(self) -> None:
        self._opening += 1
        self._boot = self._machine.boot
        self._reporter.begin("/dev/sim")
        self._impostor = self._faults.strike("line: another device answers")
        self._link = HostLink(check, CONTRACT_VERSION, CONTRACT_HASH, first=self._opening * _NUMBERS)
        self._conversations = Conversations(self._link)
        self._link.begin(self._world.seconds, self._world.now())
        self._pump()

    def _let_go(self) -> None:
        self._link = self._conversations = None
        self._running = {}

    def close(self) -> None:
        """The line is closed in order."""
        self.resting = True
        if self._link is not None and self.holds:
            self._link.closed("closed", "the line was closed")
            self._pump()

    def _unplugged(self) -> None:
        opening = self._opening

        def noticed() -> None:
            if self.holds and self._opening == opening and self._link is not None and not self._impostor:
                self._link.closed("unplugged", "the device was unplugged")
                self._pump()

        self._world.later(between(self._random, 0.0, 0.05), "unplugged", noticed)

    # --- bytes ----------------------------------------------------------------------------------------------------

    def _from_device(self, data: bytes) -> None:
        ordered = any(isinstance(one.event.data, HidCommitRequested) for one in self._running.values())
        if ordered and self._faults.strike("line: an answer to commit is lost"):
            return
        self._to_host(data)

    def _to_host(self, data: bytes) -> None:
        opening = self._opening
        self._cable.to_host(data, lambda piece: self._arrived(opening, piece))

    def _arrived(self, opening: int, data: bytes) -> None:
        if self.holds and opening == self._opening and self._link is not None:
            self._link.receive(data, self._world.seconds)
            self._pump()

    def _write(self, data: bytes) -> None:
        if self._impostor:
            self._to_host(self._random.choice(GARBAGE))
            return
        self._ending.leaves(data)
        if b'"op":"disarm"' in data and (self.losing or self._ending.faults.strike("line: a disarm is lost")):
            self.losing = max(0, self.losing - 1)
            return
        first = any(isinstance(one.event.data, HidPingRequested) for one in self._running.values())
        if b'"op":"ping"' in data and not first:
            late = self._world.seconds - self._alive_at
            require(late <= ALIVE_SECONDS + 0.001, f"the lease is renewed though the engine is silent for {late:.2f} s")
        if b'"op":"ping"' in data and self._behind is not None:
            self._world.later(0.0, "order", self._order)
            self.waits()
            return
        opening = self._opening
        self._cable.to_device(data, self._device.hear, lambda piece: self._arrived(opening, piece))
        if b'"op":"commit"' in data and self._faults.strike("line: an order comes again"):
            self._world.later(between(self._random, 0.1, 4.0), "order again", partial(self._device.hear, data))

    # --- the pump -------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Carry out the results: facts, outcomes, bytes, the next look. The process may end during any of it."""
        link, conversations = self._link, self._conversations
        if conversations is not None and self._world.seconds >= self._hangs_until:
            self._alive_at = self._world.seconds
            conversations.alive(self._alive_at)
        while link is not None and conversations is not None and self._same(link):
            finished, heard = conversations.advance(self._world.seconds), link.heard()
            for number, payload in finished:
                running = self._running.pop(number, None)  # none: the line's own goodbye
                if running is not None:
                    self._machine.answer(running, payload)
            self._tell(self._reporter.facts(heard))
            if not finished and not heard:
                break
        if link is None or conversations is None or not self._same(link):
            return
        if link.is_lost:
            self._let_go()
            return
        data = link.to_send()
        if data:
            self._write(data)
        self._ticking += 1
        ticking = self._ticking
        times = [at for at in (link.next_at, conversations.next_at) if at is not None]
        if times:
            seconds = max(0.0, min(times) - self._world.seconds) + 0.000001
            self._world.later(seconds, "tick", lambda: self._tick(ticking))

    def _same(self, link: HostLink) -> bool:
        return self.holds and self._link is link

    def _tick(self, ticking: int) -> None:
        if ticking == self._ticking and self.holds and self._link is not None:
            self._link.tick(self._world.seconds)
            self._pump()

    # --- what is heard --------------------------------------------------------------------------------------------

    def _tell(self, facts: list[Payload]) -> None:
        """Facts go to the log in their order, and the line does not wait for it: outcomes may overtake them."""
        for fact in facts:
            seconds = between(self._random, 0.0, 0.004)
            if self._faults.strike("host: the log is slow"):
                seconds = between(self._random, 0.1, 2.0)
            # Each a little later than the one before: at one and the same time rounding could turn two of them round.
            self._reported_at = max(self._reported_at + 0.000001, self._world.seconds + seconds)
            self._world.later(self._reported_at - self._world.seconds, "fact", partial(self._fact, fact, self._boot))

    def _fact(self, payload: Payload, boot: int) -> None:
        if self._machine.up and self._machine.boot == boot:
            self._facts += 1
            self._machine.guard(self._machine.append, payload, f"hid:{self._facts}", "hid")

    # --- effects --------------------------------------------------------------------------------------------------

    def perform(self, running: Running, digest: str, *, mute: bool = False) -> None:
        """Carry out what ``running`` asks of the device (``mute``: and never tell what came of it)."""
        ordered = isinstance(running.event.data, HidCommitRequested)
        if ordered and self._ending.faults.strike("operator: disarms while an order waits"):
            self._behind = running
            self._world.later(1.5, "order", self._order)
        else:
            self._begin(running, digest, mute=mute)

    def _order(self) -> None:
        running, self._behind = self._behind, None
        if running is not None and not running.ended and not running.stopped and running.boot == self._machine.boot:
            self._begin(running, "")

    def _begin(self, running: Running, digest: str, *, mute: bool = False) -> None:
        link, conversations = self._link, self._conversations
        if link is None or conversations is None or not self.holds:
            self._machine.answer(running, without_device(running.event))
            return
        now = self._world.seconds
        plain = self._plain(digest) if digest else None
        number = conversations.begin(exchange(running.event, plain, self._world.now()), now)
        if not mute:
            self._running[number] = running
        running.on_stop = lambda: self._stopped(link, number, running.event.data)
        self._pump()

    def _stopped(self, link: HostLink, number: int, data: Payload) -> None:
        """The performer is told to end: what it may have begun is ended at the device."""
        if self._same(link) and self._conversations is not None and self._running.pop(number, None) is not None:
            self._conversations.cancel(number, self._world.seconds)
            if isinstance(data, PRESSING):
                self._conversations.begin(goodbye(), self._world.seconds)
            self._pump()
