"""Attempts that workers on other hosts make (docs/design.md §4.7). Pure: no clock, no connection.

A table in the log's database has a row for each attempt, under the position of its request:

- open: the holder of the log offers it, under its epoch.
- claimed: a worker has it, under a claim that nobody else ever uses, and renews that.
- done: the worker has told the result.
- lost: nobody will tell one: the worker fell silent, or the offer was withdrawn before anybody took it.

Every step is one statement that compares what it expects, so it happens once, whoever sends it how often. A row that is
read may be one that only this database has; what follows from a step waits for its acknowledgement. A lost attempt is
never made again by itself: its outcome is unknown.

The claim is a lease (see ``pmagent.events.lease``): the worker counts it from sending, its box is ended from
outside when it is over, and the holder counts from when it saw the last renewal, and a tenth longer.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from pmagent.events.lease import RENEWED_PER_LEASE, SECOND, Sighting, Term

RowState = Literal["open", "claimed", "done", "lost"]


class Row(msgspec.Struct, frozen=True, gc=False):
    """An attempt in the table. ``epoch``: of the holder that offers it; ``stop``: that one asks the worker to end it;
    ``timeline``: see ``lease.Head``."""

    state: RowState
    epoch: int
    claim: str = ""
    renewals: int = 0
    stop: bool = False
    result: str = ""
    timeline: int = 1


# --- the holder's side ----------------------------------------------------------------------------------------------


class Insert(msgspec.Struct, frozen=True, gc=False):
    """Insert an open row under ``epoch``, unless there is one."""

    epoch: int


class Adopt(msgspec.Struct, frozen=True, gc=False):
    """Offer an open row of an earlier epoch, or one that was held, under ``epoch``."""

    epoch: int


class Hold(msgspec.Struct, frozen=True, gc=False):
    """Take the epoch from an open row: nobody can claim it, until it is offered again."""


class Withdraw(msgspec.Struct, frozen=True, gc=False):
    """Make an open row lost, or insert a lost one: no offer that is still on its way is taken. Done again if it was
    done already. Report ``withdrawn`` when it is acknowledged."""


class AskStop(msgspec.Struct, frozen=True, gc=False):
    """Ask the worker that has claimed the row to end its box."""


class Lose(msgspec.Struct, frozen=True, gc=False):
    """Make a row lost that is claimed so and has not been renewed since; or touch a lost one once more. Report ``lost``
    when it is acknowledged."""

    claim: str
    renewals: int


class Ended(msgspec.Struct, frozen=True, gc=False):
    """The attempt is over: with the worker's ``result``; ``lost``: with an unknown outcome; ``withdrawn``: nobody
    began it."""

    how: Literal["done", "lost", "withdrawn"]
    result: str = ""


Step = Insert | Adopt | Hold | Withdraw | AskStop | Lose | Ended


class Offer:
    """One attempt, on the side of the log's holder; ``epoch``: the one that it holds, and may raise meanwhile;
    ``lease``: of a claim, in ns. Read its row now and then; after a statement that was not acknowledged, too."""

    def __init__(self, epoch: int, lease: int) -> None:
        self.ended = False
        self.epoch = epoch
        self._lease = lease
        self.held = False
        """Whether effects are paused: nobody is to begin it meanwhile."""
        self._stop = False
        self._sighting = Sighting()

    def stop(self) -> None:
        """The attempt is to be ended: its run was, or its permit was revoked."""
        self._stop = True

    def saw(self, row: Row | None, now: int) -> list[Step]:
        """A read found ``row``."""
        if self.ended:
            return []
        if row is None or row.state == "open":
            if self._stop:
                return [Withdraw()]
            if self.held:
                return [Hold()] if row is not None and row.epoch else []
            if row is None:
                return [Insert(self.epoch)]
            return [Adopt(self.epoch)] if row.epoch != self.epoch else []  # a later one is of a history that is lost
        if row.state == "done":
            return self._end(Ended("done", row.result))
        if row.state == "lost":
            return [Lose(row.claim, row.renewals) if row.claim else Withdraw()]
        self._sighting.saw((row.claim, row.timeline, row.renewals), now)
        if now >= self._sighting.over_at(self._lease):
            return [Lose(row.claim, row.renewals)]
        return [AskStop()] if self._stop and not row.stop else []

    def withdrawn(self) -> list[Step]:
        """``Withdraw`` is acknowledged."""
        return self._end(Ended("withdrawn"))

    def lost(self) -> list[Step]:
        """``Lose`` is acknowledged."""
        return self._end(Ended("lost"))

    def _end(self, ended: Ended) -> list[Step]:
        if self.ended:
            return []
        self.ended = True
        return [ended]


# --- the worker's side ----------------------------------------------------------------------------------------------


class Ask(msgspec.Struct, frozen=True, gc=False):
    """Claim any open row that fits, under its epoch if that is the log's. Report ``claimed``, ``nothing`` or
    ``unknown``."""

    sent: int


class Keep(msgspec.Struct, frozen=True, gc=False):
    """Renew the claim. Report ``kept``, ``gone`` or ``unknown``."""

    sent: int


class Begin(msgspec.Struct, frozen=True, gc=False):
    """Start the box, unless it is ``until`` by now; it is ended from outside at that time. Report ``ended``."""

    until: int


class Extend(msgspec.Struct, frozen=True, gc=False):
    """The box may run until then."""

    until: int


class End(msgspec.Struct, frozen=True, gc=False):
    """End the box."""


class Report(msgspec.Struct, frozen=True, gc=False):
    """Make the row done, with ``result``, if it is still claimed so. Report ``reported``, ``gone`` or ``unknown``."""

    result: str
    sent: int


Deed = Ask | Keep | Begin | Extend | End | Report


class Claim:
    """One claim of a worker, under a name that nobody else ever uses; ``lease`` and ``retry`` in ns.

    Phases: asking; doubtful (nobody knows whether the claim was made); running; telling (the box has ended); over.
    One statement is on its way at a time; ``sent`` names it. ``timer`` is due at ``due``."""

    UNSTARTED = "unstarted"
    """The result of a claim that was known too late: the box was never started."""

    def __init__(self, claim: str, lease: int, retry: int = SECOND) -> None:
        self.claim = claim
        self.phase: Literal["new", "asking", "doubtful", "running", "telling", "over"] = "new"
        self.due = 0
        self.told = ""
        """How the report came out: done, or gone (the row is lost; the result is evidence and nothing more)."""
        self.term = Term(lease)
        self._retry = retry
        self._flight = self._last = self._asked = 0
        self._result = ""

    def ask(self, now: int) -> list[Deed]:
        """Ask for an attempt."""
        self.phase = "asking"
        self._flight = self._last = self._asked = now
        self.due = now + self.term.length
        return [Ask(now)]

    def claimed(self, sent: int, row: Row, now: int) -> list[Deed]:
        """The claim is acknowledged."""
        if not self._landed(sent):
            return []
        return self._begin(sent, row.stop, now)

    def nothing(self, sent: int) -> list[Deed]:
        """There was nothing to claim."""
        if self._landed(sent):
            self.phase = "over"
        return []

    def kept(self, sent: int, row: Row, now: int) -> list[Deed]:
        """The renewal is acknowledged."""
        if not self._landed(sent):
            return []
        if self.phase == "doubtful":
            return self._begin(sent, row.stop, now)
        self.term.renewed(sent)
        if self.phase != "running":
            return self._tell(now) if self.phase == "telling" else []
        self._time(now)
        return [End()] if row.stop else [Extend(self.term.ends)]

    def gone(self, sent: int, row: Row | None) -> list[Deed]:
        """The row is not claimed so any more."""
        if not self._landed(sent):
            return []
        running, self.phase = self.phase == "running", "over"
        mine = row is not None and row.state == "done" and row.claim == self.claim
        self.told = "done" if mine else "gone"
        return [End()] if running else []

    def unknown(self, sent: int, now: int) -> list[Deed]:
        """Nobody knows what became of the statement."""
        if self._landed(sent):
            if self.phase == "asking":
                self.phase = "doubtful"
            self.due = now + self._retry
        return []

    def ended(self, result: str, now: int) -> list[Deed]:
        """The box has ended, with this result."""
        if self.phase != "running":
            return []
        self.phase, self._result = "telling", result
        return [] if self._flight else self._tell(now)

    def reported(self, sent: int) -> list[Deed]:
        """The report is acknowledged."""
        if self._landed(sent):
            self.phase, self.told = "over", "done"
        return []

    def timer(self, now: int) -> list[Deed]:
        """The time ``due`` has come."""
        deeds: list[Deed] = []
        if self.phase == "running" and now >= self.term.ends:
            deeds.append(End())
        if self.phase == "doubtful" and now >= self._asked + self.term.length:
            self.phase = "over"
        if self.phase == "running" and self._flight:
            self._time(now)
        elif self._flight or self.phase in ("new", "asking", "over"):
            self.due = now + self.term.length // RENEWED_PER_LEASE
        elif self.phase == "telling":
            deeds += self._tell(now)
        elif self.phase == "doubtful" or now >= self._last + self.term.length // RENEWED_PER_LEASE:
            # A claim in doubt is renewed, not looked for: a row that is found may be one that only this database has.
            self._flight = self._last = now
            deeds.append(Keep(now))
            self._time(now)
        else:
            self._time(now)
        return deeds

    def _landed(self, sent: int) -> bool:
        if not sent or sent != self._flight:
            return False
        self._flight = 0
        return True

    def _begin(self, sent: int, stop: bool, now: int) -> list[Deed]:
        self.term.renewed(sent)
        if stop or now >= self.term.live_until:
            self.phase, self._result = "telling", self.UNSTARTED
            return self._tell(now)
        self.phase = "running"
        self._time(now)
        return [Begin(self.term.ends)]

    def _tell(self, now: int) -> list[Deed]:
        self._flight, self.due = now, now + self._retry
        return [Report(self._result, now)]

    def _time(self, now: int) -> None:
        renewal = self._last + self.term.length // RENEWED_PER_LEASE
        self.due = min((at for at in (renewal, self.term.ends) if at > now), default=now + self._retry)
