"""A worker on another host: it claims attempts, one at a time, and lets them act in boxes."""

from __future__ import annotations

from collections.abc import Sequence

from pmagent.actors.core.claims import Ask, Begin, Claim, Deed, End, Extend, Keep, Report
from pmagent.replay.machines import database as sql
from pmagent.replay.machines.database import Answer
from pmagent.replay.machines.laws import Laws
from pmagent.replay.machines.process import Box, Host, Process
from pmagent.replay.machines.world import LEASE, World


class Worker(Process):
    """One process of a worker. A box goes on without it, until the lease of its claim is over."""

    def __init__(self, world: World, host: Host, name: str, laws: Laws) -> None:
        super().__init__(world, host, name)
        self._laws = laws
        self._claims = 0
        self._box: Box | None = None
        self._next()

    def _next(self) -> None:
        self._claims += 1
        self._claim, self._position = Claim(f"{self.name}.{self._claims}", LEASE), 0
        self._tries, self._asked = 0, self.world.now
        self._obey(self._claim.ask(self.now()))

    def _due(self) -> None:
        self._obey(self._claim.timer(self.now()))

    def _obey(self, deeds: Sequence[Deed]) -> None:
        claim = self._claim
        for deed in deeds:
            match deed:
                case Ask(sent):
                    self._say(sql.claim_any(claim.claim), sent, deed)
                case Keep(sent):
                    self._say(sql.keep(claim.claim, self._position), sent, deed)
                case Report(result, sent):
                    self._tell(result)
                    self._say(sql.report(claim.claim, self._position, result), sent, deed)
                case Begin(until):
                    self._begin(until)
                case Extend(until) if self._box is not None:
                    self._box.until = until
                case End() if self._box is not None:
                    self._box.end()
        if self.alive and claim is self._claim and claim.claim:
            self._go_on(claim)

    def _tell(self, result: str) -> None:
        self._tries += 1
        if self._tries == 2:
            self.world.faults.note("result sent again")
        if result == Claim.UNSTARTED:
            self.world.faults.note("claim known too late")

    def _go_on(self, claim: Claim) -> None:
        if claim.phase != "over":
            self.later(claim.due, self._due)
            return
        if claim.told == "gone" and self._tries:
            self.world.faults.note("result refused")
        self._claim = Claim("", LEASE)
        self.world.at(self.world.span(4, 12), self.run, self._next)

    def _say(self, statement: sql.Statement, sent: int, deed: Deed) -> None:
        claim = self._claim
        self.ask(self._position or -1, statement, lambda answer: self._heard(claim, answer, sent, deed))

    def _heard(self, claim: Claim, answer: Answer | None, sent: int, deed: Deed) -> None:
        if claim is not self._claim:
            return
        now, doubtful = self.now(), claim.phase == "doubtful"
        if answer is None or answer.warning or answer.settings:
            self._obey(claim.unknown(sent, now))
        elif answer.done:
            self._position = answer.position
            assert answer.row is not None
            if isinstance(deed, Report):
                self._obey(claim.reported(sent))
            elif isinstance(deed, Keep):
                if doubtful:
                    self.world.faults.note("claim in doubt: it was made")
                self._obey(claim.kept(sent, answer.row, now))
            else:
                self._obey(claim.claimed(sent, answer.row, now))
        elif isinstance(deed, Ask):
            self._obey(claim.nothing(sent))
        else:
            if doubtful:
                self.world.faults.note("claim in doubt: it was not")
            self._obey(claim.gone(sent, answer.row))

    def _begin(self, until: int) -> None:
        world = self.world
        if world.faults.strike("process: stopped after a check of the lease"):
            self.pause(world.span(1, 90))
        if self.now() >= until:  # the box itself looks, before anything else
            self._box_ended("killed")
            return
        key = self._laws.begins_elsewhere(self, self._position, self._claim.claim, self._asked)
        seconds = world.span(0.5, 60)
        if world.faults.strike("box: killed"):
            seconds /= 10
        self._box = Box(self, key, until, seconds, self._box_ended, here=False)

    def _box_ended(self, how: str) -> None:
        self._box = None
        self._obey(self._claim.ended(f"{how} {self._claim.claim}", self.now()))
