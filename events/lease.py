"""The daemon that may act on a log that several can reach (docs/design.md §4.6). Pure: no clock, no connection.

Two things keep daemons apart. The *epoch*, a number in the log's head, fences appends: a take-over raises it, and every
append compares it. The *lease* fences the world: an acknowledgement may reach a daemon that was stopped for a minute
after its successor has taken over, and must start nothing then. Times are nanoseconds of CLOCK_BOOTTIME, each of the
daemon's own host: only the rates of clocks matter, and two of them may differ by a tenth.

The holder counts its lease from when the last acknowledged statement was *sent*; it is live until a tenth is left. With
half of that left everything is told to end, and at the end of the lease whatever has not ended is ended from outside.
Whoever watches it counts from when it *saw* the last sign of it, and a tenth longer.

Phases of a daemon:

- standby: it follows the log, and asks for the head now and then.
- taking: it has asked to take over; the outcome is not known yet.
- waiting: it holds the epoch and appends; the lease of the holder before it may not be over yet.
- acting: its lease is live: effects start.
- lapsed: its lease is not live: nothing starts, attended effects end.
- over: its lease is as good as over: everything ends. It goes on trying to renew: nobody may have taken over.
- releasing: nothing runs any more, and the head is to say so.
- ended: it has been deposed, has released the log, or does not know what became of an append; the process ends.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

PARTS: Final = 10
"""A lease has so many parts: one is the margin of each side."""

RENEWED_PER_LEASE: Final = 3
"""A holder that appends nothing renews its lease so often."""

SECOND: Final = 1_000_000_000

Phase = Literal["standby", "taking", "waiting", "acting", "lapsed", "over", "releasing", "ended"]

_HOLDS: Final = ("waiting", "acting", "lapsed", "over")
_ACTED: Final = ("acting", "lapsed")


class Term:
    """The holder's side of a lease of ``length`` ns: from when the last acknowledged statement was sent."""

    __slots__ = ("length", "sent")

    def __init__(self, length: int = 0, sent: int = 0) -> None:
        self.length = length
        self.sent = sent

    def renewed(self, sent: int) -> None:
        """The statement sent at ``sent`` is acknowledged."""
        self.sent = max(self.sent, sent)

    @property
    def live_until(self) -> int:
        """Something may start before this time, and whatever must be attended has ended by then."""
        return self.sent + self.length - self.length // PARTS

    @property
    def closes(self) -> int:
        """Everything is told to end at this time."""
        return self.sent + self.length - self.length // PARTS // 2

    @property
    def ends(self) -> int:
        """Everything has ended by this time."""
        return self.sent + self.length


class Sighting:
    """The side that watches a lease: the last sign of it, and when that was seen first."""

    __slots__ = ("mark", "since")

    def __init__(self) -> None:
        self.mark: tuple[object, ...] = ()
        self.since = 0

    def saw(self, mark: tuple[object, ...], now: int) -> None:
        """The answer to a read holds ``mark``, which is another one after each renewal."""
        if mark != self.mark:
            self.mark, self.since = mark, now

    def over_at(self, length: int) -> int:
        """A lease of ``length``, not renewed since, is over then."""
        return self.since + length + length // PARTS


class Head(msgspec.Struct, frozen=True, gc=False):
    """The head of a log. ``timeline`` is the database's, which a promotion changes: ``renewals``, a counter, may come
    to the same number once more behind it. ``lease`` is in ns, and belongs to the log."""

    epoch: int
    holder: str
    renewals: int
    released: bool
    lease: int
    timeline: int = 1

    @property
    def mark(self) -> tuple[int, int, int]:
        """Differs after each append and renewal."""
        return self.timeline, self.epoch, self.renewals


class Read(msgspec.Struct, frozen=True, gc=False):
    """Read the head; report ``saw``, or nothing if there is no answer."""

    sent: int


class Take(msgspec.Struct, frozen=True, gc=False):
    """Raise the epoch from ``expected`` by one in this daemon's name, or renew it if that was done already: until that
    is acknowledged, a head that says so may be one that only this database has. Report ``took``, ``refused``,
    ``failed`` or ``unknown``."""

    expected: int
    sent: int


class Renew(msgspec.Struct, frozen=True, gc=False):
    """Renew the lease; report ``answered``, ``refused``, ``failed`` or ``unknown``."""

    epoch: int
    sent: int


class Release(msgspec.Struct, frozen=True, gc=False):
    """Mark the log as released; report as for ``Renew``."""

    epoch: int
    sent: int


class Hold(msgspec.Struct, frozen=True, gc=False):
    """This daemon holds ``epoch``: read the log to its end, find out there what became of an append in doubt, go on
    appending. ``raised``: it held the epoch before, too."""

    epoch: int
    raised: bool


class Act(msgspec.Struct, frozen=True, gc=False):
    """The lease is live: judge what earlier holders left open, and start effects."""


class Lapse(msgspec.Struct, frozen=True, gc=False):
    """The lease is not live: end what must be attended; with ``over`` everything."""

    over: bool


class Die(msgspec.Struct, frozen=True, gc=False):
    """End the process. ``reason``: deposed, unknown, released or stopped."""

    reason: Literal["deposed", "unknown", "released", "stopped"]


Action = Read | Take | Renew | Release | Hold | Act | Lapse | Die


class Lease:
    """The part of one daemon: of the process ``holder``, whose name no other process ever has. ``poll``: how often a
    standby reads the head, and how long is waited between two tries (ns); ``outage``: how long the outcome of an append
    may stay unknown.

    Every input returns what follows, to be carried out in its order. ``timer`` is due at ``due``. At most one append or
    renewal and one take-over are on their way at a time; ``sent`` names them, and an answer to another one changes
    nothing."""

    def __init__(self, holder: str, poll: int = SECOND, outage: int = 60 * SECOND) -> None:
        self.holder = holder
        self.phase: Phase = "standby"
        self.epoch = 0
        """The epoch that this daemon holds; 0 for none."""
        self.why: Literal["", "released", "expired", "lost"] = ""
        """The reason to take over: the log was released, its lease passed without a sign, or the holder's session was
        seen to end."""
        self.due = 0
        self.term = Term()
        self._poll = poll
        self._outage = outage
        self._head: Head | None = None
        self._sighting = Sighting()
        self._locked: tuple[int, int] | None = None
        """Timeline and epoch in which the holder's session was seen to live."""
        self._flight = 0
        self._appends = False
        """Whether what is on its way is an append."""
        self._last = 0
        """When something was sent last that renews the lease."""
        self._expected: int | None = None
        """The epoch that a take-over expects whose outcome is not known."""
        self._taking = 0
        """When the take-over that is on its way was sent."""
        self._acts_at = 0
        self._doubted = 0
        self._stopping = self._idle = False

    # --- questions ------------------------------------------------------------------------------------------------

    def live(self, now: int) -> bool:
        """Whether something may start now."""
        return self.phase in _ACTED and not self._stopping and now < self.term.live_until

    def until(self, *, attended: bool) -> int:
        """When something that starts now has to be ended from outside: a process may be stopped between the question
        whether its lease is live and the start, and wake up much later."""
        return self.term.live_until if attended else self.term.ends

    def append(self, now: int) -> bool:
        """Whether an append may be sent now; if so it counts as sent."""
        if self._flight or self._expected is not None or self.phase not in _HOLDS or self._idle:
            return False
        self._flight = self._last = now
        self._appends = True
        return True

    def awaits(self, sent: int) -> bool:
        """Whether the answer to what was sent at ``sent`` is still waited for."""
        return bool(sent) and sent == self._flight and self.phase != "ended"

    # --- inputs ---------------------------------------------------------------------------------------------------

    def saw(self, head: Head, sent: int, now: int, *, locked: bool = True) -> list[Action]:
        """A read that was sent at ``sent`` found ``head``. ``locked``: the lock of the holder's session is held."""
        if self.phase == "ended":
            return []
        if self._expected is not None:
            return self._look(head, now)
        if self.epoch:
            return self._end("deposed") if head.epoch > self.epoch else []
        self._head = head  # of an earlier epoch, perhaps: a later one may be lost that only one server had
        self._sighting.saw(head.mark, now)
        if locked:
            self._locked = head.timeline, head.epoch
        # A failover of the database ends all sessions: only one that was seen on this timeline tells of its end.
        free = not locked and self._locked == (head.timeline, head.epoch)
        if head.released or free or sent >= self._sighting.since + head.lease:
            self.why = "released" if head.released else "lost" if free else "expired"
            self.phase, self._expected = "taking", head.epoch
            return self._take(now)
        return []

    def took(self, before: Head, sent: int, now: int) -> list[Action]:
        """The take-over is acknowledged; ``before`` is the head that it found."""
        if not sent or sent != self._taking or self.phase == "ended":
            return []
        return self._hold(None if before.holder == self.holder and before.epoch != self.epoch else before, sent, now)

    def answered(self, sent: int, now: int) -> list[Action]:
        """The statement sent at ``sent`` is acknowledged."""
        if not self._landed(sent):
            return []
        if self.phase == "releasing":
            return self._end("released")
        return [*self._renewed(sent, now), *self._settle(now)]

    def refused(self, sent: int, head: Head, now: int) -> list[Action]:
        """The statement sent at ``sent`` did nothing, since the head is another one than it expected."""
        if sent and sent == self._taking and self.phase != "ended":
            self._taking = 0
            return self._look(head, now)
        if not self._landed(sent):
            return []
        return self._end("stopped" if self.phase == "releasing" else "deposed")

    def failed(self, sent: int, now: int) -> list[Action]:
        """The statement sent at ``sent`` did nothing and never will (the database's settings forbid it now)."""
        if sent and sent == self._taking:
            self._taking, self.due = 0, now + self._poll
            return []
        if not self._landed(sent):
            return []
        return self._end("stopped") if self.phase == "releasing" else self._soon(now)

    def unknown(self, sent: int, now: int) -> list[Action]:
        """Nobody knows what became of what was sent at ``sent``: the connection broke, the time was over, or it was
        acknowledged with a warning. Nothing is asked of that connection any more."""
        if sent and sent == self._taking:
            self._taking, self.due = 0, now + self._poll
            return []
        appends = self._appends
        if not self._landed(sent):
            return []
        if self.phase == "releasing":
            return self._end("stopped")
        if not appends:  # to renew once more does no harm
            return self._soon(now)
        # Raising the epoch waits for the append, or makes it fail: the sum of the head then tells which.
        self._expected, self._doubted = self.epoch, now
        return [*self._take(now), *self._settle(now)]

    def timer(self, now: int) -> list[Action]:
        """The time ``due`` has come."""
        if self.phase == "ended":
            return []
        if self.phase in ("standby", "taking"):
            self.due = now + self._poll
            return [] if self._taking else [Read(now)]
        if self._expected is None:
            return self._settle(now)
        if now >= self._doubted + self._outage:
            return self._end("unknown")
        taken = [] if self._taking else self._take(now)
        return [*self._settle(now), *taken]

    def stop(self, now: int) -> list[Action]:
        """An orderly stop: nothing starts any more. Report ``idle`` when nothing runs."""
        self._stopping = True
        return self._settle(now) if self.epoch else self._end("stopped")

    def idle(self, now: int) -> list[Action]:
        """Nothing runs and nothing more is to be appended."""
        self._idle = True
        return self._settle(now) if self.phase != "ended" else []

    # --- rules ----------------------------------------------------------------------------------------------------

    def _landed(self, sent: int) -> bool:
        if not self.awaits(sent):
            return False
        self._flight, self._appends = 0, False
        return True

    def _soon(self, now: int) -> list[Action]:
        """Renew after a moment, since the last try renewed nothing."""
        self._last = min(self._last, now + self._poll - self.term.length // RENEWED_PER_LEASE)
        return self._settle(now)

    def _end(self, reason: Literal["deposed", "unknown", "released", "stopped"]) -> list[Action]:
        self.phase = "ended"
        return [Lapse(over=True), Die(reason)]

    def _take(self, now: int) -> list[Action]:
        assert self._expected is not None
        self._taking, self.due = now, now + self._poll
        return [Take(self._expected, now)]

    def _look(self, head: Head, now: int) -> list[Action]:
        """Find out from the head what became of a take-over."""
        expected = self._expected
        if expected is None or head.epoch < expected:
            return []
        if head.epoch > expected and head.holder != self.holder:
            if self.epoch:
                return self._end("deposed")
            self.phase, self._expected = "standby", None
            self._head = head
            self._sighting.saw(head.mark, now)
            return []
        return [] if self._taking else self._take(now)

    def _hold(self, before: Head | None, sent: int, now: int) -> list[Action]:
        """The epoch is this daemon's. ``before``: the head that the take-over found; None: its own, so an answer to it
        was lost."""
        assert self._expected is not None
        raised = self.epoch > 0
        self.epoch, self._expected, self._taking = self._expected + 1, None, 0
        self._last = max(self._last, sent)
        if not raised:
            known = before or self._head
            assert known is not None
            self.term = Term(known.lease, sent)
            self.phase = "waiting"
            if known.released:
                self._acts_at = now
            elif before is not None and before.mark == self._sighting.mark:
                self._acts_at = self._sighting.over_at(known.lease)
            else:  # it was renewed behind the last look
                self._acts_at = now + known.lease + known.lease // PARTS
        return [Hold(self.epoch, raised), *self._renewed(sent, now), *self._settle(now)]

    def _renewed(self, sent: int, now: int) -> list[Action]:
        """The lease counts from ``sent``. If it was not live until now, that is told first: starts may have been held
        meanwhile, and only ``Act`` lets them go."""
        actions = self._passed(now)
        self.term.renewed(sent)
        return actions

    def _settle(self, now: int) -> list[Action]:
        """The phase at this time, and the renewal that is due."""
        term, actions = self.term, self._passed(now)
        if self.phase in _HOLDS and self.phase != "acting" and self._acts_at <= now < term.live_until:
            self.phase = "acting"
            actions.append(Act())
        if not self._flight and self._expected is None:
            if self._idle:
                return [*actions, *self._release(now)]
            if now >= self._last + term.length // RENEWED_PER_LEASE:
                self._flight = self._last = now
                actions.append(Renew(self.epoch, now))
        self.due = self._next(now)
        return actions

    def _passed(self, now: int) -> list[Action]:
        """The phase, where the lease has passed by this time."""
        if self.phase == "acting" and self.term.live_until <= now < self.term.closes:
            self.phase = "lapsed"
            return [Lapse(over=False)]
        if self.phase in _ACTED and now >= self.term.closes:
            self.phase = "over"
            return [Lapse(over=True)]
        return []

    def _release(self, now: int) -> list[Action]:
        if now < self._acts_at:  # the next holder would not wait for the lease that this one waits for
            return self._end("stopped")
        self.phase, self._flight = "releasing", now
        self.due = now + self._poll
        return [Release(self.epoch, now)]

    def _next(self, now: int) -> int:
        term = self.term
        times = [self._last + term.length // RENEWED_PER_LEASE, self._acts_at, term.live_until, term.closes]
        if self._expected is not None:
            times.append(now + self._poll)
        return min((at for at in times if at > now), default=now + self._poll)
