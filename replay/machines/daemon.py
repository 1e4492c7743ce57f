"""A daemon in a world of machines: the real lease and scheduler of effects, around a log of effects and their ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pmagent.actors.core.ledger import GATE, Cancel, EffectLedger
from pmagent.actors.core.scheduler import Action as Doing
from pmagent.actors.core.scheduler import Conclude, Perform, Scheduler, Stop, Timer
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.control import EffectsPaused, EffectsResumed
from pmagent.contracts.effect import EffectCancelRequested, EffectFailed
from pmagent.contracts.hid import HidArmRequested, HidLeaseRequested
from pmagent.contracts.orchestra_events import TaskAttemptRequested
from pmagent.contracts.payload import type_of
from pmagent.events.event import Event
from pmagent.events.lease import Act, Action, Die, Hold, Lapse, Lease, Read, Release, Renew, Take
from pmagent.replay.machines import database as sql
from pmagent.replay.machines.database import ROOT, Answer, Entry
from pmagent.replay.machines.laws import Laws
from pmagent.replay.machines.offers import Offers
from pmagent.replay.machines.process import Box, Host, Process
from pmagent.replay.machines.world import POLL, World

_ATTEMPT: Final[dict[str, Any]] = {
    "permit": 1, "run_id": "r", "requested": 1, "assigned": 1, "attempt": 1, "action": "feature_work", "seconds": 9.0,
    "simulated": False,
}
HERE: Final = TaskAttemptRequested(task_id="here", **_ATTEMPT)
ELSEWHERE: Final = TaskAttemptRequested(task_id="elsewhere", **_ATTEMPT)
ATTENDED: Final = HidLeaseRequested(boot_id="b")
URGENT: Final = HidArmRequested(permit=1, device_id="d", boot_id="b", action_class="feature_work")
REPEATED: Final = TimerRequested(at="")
KINDS: Final = (HERE, ELSEWHERE, ELSEWHERE, ATTENDED, URGENT, REPEATED)
"""The kinds of effects: a task in a box here, one in a box of a worker, an armed device, an order that must not
wait, a timer."""

PAUSED: Final = EffectsPaused(request=1, since=1, operator_id="o", channel="cli", reason="")
RESUMED: Final = EffectsResumed(request=1, since=1, held=0, operator_id="o", channel="cli")


def elsewhere(event: Event) -> bool:
    """Whether workers make it."""
    return event.data is ELSEWHERE


class _Batch(msgspec.Struct, eq=False, gc=False):
    """The commits that wait for their acknowledgement."""

    entry: Entry
    submissions: list[tuple[list[Event], Sequence[Event], Sequence[Cancel]]]
    sent: bool = False


class Daemon(Process):
    """One process of a daemon."""

    def __init__(self, world: World, host: Host, name: str, laws: Laws) -> None:
        super().__init__(world, host, name)
        self.laws = laws
        self.lease = Lease(name, POLL)
        self.ledger = EffectLedger()
        self._scheduler = Scheduler(self.ledger, self._live, elsewhere)
        self._folded = self._end = ROOT
        """The end of the log as far as it was read, and as an answer told it last."""
        self._trusted: Entry | None = None
        self._known: set[str] = set()
        self._position = self.held_at = 0
        self._left: Any = None
        self._batch: _Batch | None = None
        self._waiting: list[tuple[list[Event], Sequence[Event], Sequence[Cancel]]] = []
        self._boxes: dict[int, Box] = {}
        self._offers = Offers(self)
        self._timers: dict[int, Timer] = {}
        laws.started(self)
        self.later(self.now(), self._due)

    # --- the lease -----------------------------------------------------------------------------------------------

    def _live(self) -> bool:
        faults = self.world.faults
        if faults.strike("process: stopped before a check of the lease"):
            self.pause(self.world.span(1, 90))
        live = self.lease.live(self.now())
        if faults.strike("process: stopped after a check of the lease"):
            self.pause(self.world.span(1, 90))
        if not live:
            faults.note("a start is held: no live lease")
        return live

    def _due(self) -> None:
        self._obey(self.lease.timer(self.now()))

    def _obey(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if not self.alive:  # what it found out has ended it
                return
            match action:
                case Read(sent):
                    self.ask(0, None, lambda answer, sent=sent: self._saw(answer, sent))  # type: ignore[misc]
                case Take(expected, sent):
                    self.ask(
                        0, sql.take(expected, self.name),
                        lambda answer, sent=sent: self._took(answer, sent),  # type: ignore[misc]
                    )
                case Renew(epoch, sent) | Release(epoch, sent):
                    statement = sql.renew(epoch, self.name, released=isinstance(action, Release))
                    self.ask(0, statement, lambda answer, sent=sent: self._renewed(answer, sent))  # type: ignore[misc]
                case Hold(_, raised):
                    self._hold(raised)
                case Act():
                    self._act()
                case Lapse(over):
                    self._lapse(over)
                case Die(reason):
                    if reason in ("deposed", "released"):
                        self.world.faults.note(reason)
                    self.end(0.01)
                    return
        if self.alive:
            self._commit()
            self.later(self.lease.due, self._due)

    def trusts(self, answer: Answer) -> bool:
        """Whether the log holds what is known to have been acknowledged."""
        if answer.log is not self._trusted and not answer.log.holds(self.host.known):
            self.world.faults.note("database behind what is known")
            self.other_server()
            return False
        self._trusted = answer.log
        return True

    def _saw(self, answer: Answer | None, sent: int) -> None:
        if answer is None or not self.trusts(answer):
            return
        self._end = answer.log
        head, phase = answer.head, self.lease.phase
        if phase == "standby" and not self._follow():
            return
        actions = self.lease.saw(head, sent, self.now(), locked=answer.locked)
        if phase == "standby" and self.lease.phase == "taking":
            why = "released" if head.released else "silent" if answer.locked else "its session ended"
            self.world.faults.note(f"taken over: {why}")
        self._obey(actions)

    def _follow(self) -> bool:
        entries = self._end.since(self._folded)
        if entries is None:
            self.world.faults.note("follower begins anew")
            self.end(0.01)
            return False
        for entry in entries:
            for event in entry.events:
                self._fold(event)
        self._folded = self._end
        return True

    def _fold(self, event: Event) -> tuple[Sequence[Event], Sequence[Cancel]]:
        self._position = event.position
        self._known.add(event.id)
        return self.ledger.book(event)

    def _took(self, answer: Answer | None, sent: int) -> None:
        if answer is None or answer.warning:
            self._obey(self.lease.unknown(sent, self.now()))
        elif answer.settings:
            self._obey(self.lease.failed(sent, self.now()))
        else:
            if self.trusts(answer):
                self._end = answer.log
                if answer.done:
                    if answer.head.holder == self.name and not self.lease.epoch:
                        self.world.faults.note("take-over: its answer was lost")
                    self._obey(self.lease.took(answer.head, sent, self.now()))
                else:
                    self.world.faults.note("two take-overs at once")
                    self._obey(self.lease.refused(sent, answer.head, self.now()))
            else:
                self._obey(self.lease.unknown(sent, self.now()))

    def _renewed(self, answer: Answer | None, sent: int) -> None:
        now, lease = self.now(), self.lease
        if answer is None or answer.warning:
            if answer is not None:
                self.world.faults.note("acknowledged with a warning")
            self._obey(lease.unknown(sent, now))
        elif answer.done:
            self._acknowledged(sent, now)
        elif answer.settings:
            self.world.faults.note("append refused by the settings")
            self._obey(lease.failed(sent, now))
        else:
            self._obey(lease.refused(sent, answer.head, now))

    def _acknowledged(self, sent: int, now: int) -> None:
        if self.world.nodes[0].visible.head.epoch > self.lease.epoch:
            self.world.faults.note("acknowledged after the take-over")
        self.session()
        actions = self.lease.answered(sent, now)
        self._extend()
        self._obey(actions)

    def _extend(self) -> None:
        for box in self._boxes.values():
            box.until = self.lease.until(attended=box.attended)

    def _hold(self, raised: bool) -> None:
        self.session()
        self._offers.raised(self.lease.epoch)
        if raised:
            self._resolve()
            return
        if not self._follow():
            return
        if not self.lease.live(self.now()):
            self.world.faults.note("take-over: waits for the old lease")
        self._left = self.ledger.unfinished()
        self._hold_offers(held=self._left.paused)
        self._scheduler = Scheduler(self.ledger, self._live, elsewhere)  # it begins with what is durable now

    def _resolve(self) -> None:
        """Find out what became of the append in doubt: nothing of it can land any more."""
        batch, faults = self._batch, self.world.faults
        assert batch is not None
        if self._end is batch.entry:  # the sum is the new one
            faults.note("append in doubt: it is there")
            self._landed()
        elif self._end is batch.entry.before:
            faults.note("append in doubt: sent again")
            batch.sent = False
            self._commit()
        else:
            self.end(0.01)

    def _act(self) -> None:
        if not self.lease.live(self.now()):  # it was stopped since this was decided
            return
        left, self._left = self._left, None
        if left is None:
            self.world.faults.note("the lease is live again")
            self.held_at = self.held_at and self.world.now  # it stood still, or reached nobody, and begins to see to it
        else:
            self.laws.recovers(self)
            if any(elsewhere(event) for event in left.begun):
                self.world.faults.note("attempt adopted")
            self._carry_out(self._scheduler.recovered(left, unread=False))
        if self.alive:
            self._carry_out(self._scheduler.leased())

    def _hold_offers(self, *, held: bool) -> None:
        self.held_at = held and self.world.now
        self._offers.hold(held=held)

    def _lapse(self, over: bool) -> None:
        actions = self._scheduler.lapsed(over=over)
        if actions:
            self.world.faults.note("an effect ends with the lease" if over else "an attended effect ends with it")
        self._carry_out(actions)

    @property
    def end_of_log(self) -> Entry:
        """The end of the log, as far as it is known here to be durable."""
        return self._folded

    # --- the log -------------------------------------------------------------------------------------------------

    def demand(self, id: str, kind: msgspec.Struct) -> None:
        """Somebody asks for an effect, perhaps once more: what an earlier holder has appended is durable."""
        if not self.lease.epoch:
            return
        if id not in self._known:
            self._decide(id, kind)
        elif self._batch is None and not self._waiting:
            self.laws.acknowledged_ids.add(id)

    def switch(self, payload: msgspec.Struct, id: str) -> None:
        """Pause or resume effects."""
        if self.lease.epoch and isinstance(payload, EffectsPaused) is not self.ledger.paused:
            self._decide(id, payload, actor=GATE)

    def cancel(self, id: str) -> None:
        """Take back any effect."""
        if self.lease.epoch and self.ledger.open:
            at = self.world.chances.choice([*self.ledger.open])
            self._decide(id, EffectCancelRequested(request=at))

    def _decide(self, id: str, payload: msgspec.Struct, *, actor: str = "boss") -> None:
        self._append(Event(self._position + 1, "", id, "decision", actor, type_of(payload), "", 0, payload, b""))

    def _conclude(self, event: Event, outcome: msgspec.Struct) -> None:
        if self.ledger.is_open(event.position):
            self.laws.concluded(self, event)
            id = f"{event.id} ends {self.world.steps}"
            type_ = type_of(outcome)
            self._append(Event(self._position + 1, "", id, "fact", "x", type_, "", event.position, outcome, b""))

    def _append(self, event: Event) -> None:
        self._waiting.append(([event], *self._fold(event)))
        self._commit()

    def _commit(self) -> None:
        batch = self._batch
        if (batch is None and not self._waiting) or (batch is not None and batch.sent):
            return
        if not self.lease.append(sent := self.now()):
            return
        if batch is None:
            events = [event for events, _, _ in self._waiting for event in events]
            batch = self._batch = _Batch(Entry(self._folded, events), self._waiting)
            self._waiting = []
        batch.sent = True
        statement, made = sql.append(self.lease.epoch, batch.entry), batch
        self.ask(0, statement, lambda answer: self._appended(answer, sent, made))

    def _appended(self, answer: Answer | None, sent: int, batch: _Batch) -> None:
        if self._batch is not batch:
            return
        if answer is not None and answer.settings:
            self.world.faults.note("append refused by the settings")
            batch.sent = batch.sent and not self.lease.awaits(sent)  # a late answer tells nothing of what came since
            self._obey(self.lease.failed(sent, self.now()))
        elif answer is not None and answer.done and not answer.warning and self.lease.awaits(sent):
            self._landed()
            self._acknowledged(sent, self.now())
        else:
            self._renewed(answer, sent)

    def _landed(self) -> None:
        """The batch is durable."""
        batch, self._batch = self._batch, None
        assert batch is not None
        self._folded = self.host.known = batch.entry
        for events, starts, cancels in batch.submissions:
            self.laws.acknowledged(self, events)
            for event in events:
                if isinstance(event.data, EffectsPaused | EffectsResumed):
                    self._hold_offers(held=event.data is PAUSED)
            self._carry_out(self._scheduler.durable(events, starts, cancels))

    # --- effects -------------------------------------------------------------------------------------------------

    def _carry_out(self, actions: Sequence[Doing]) -> None:
        for action in actions:
            match action:
                case Perform(event):
                    self._perform(event)
                case Conclude(event, outcome):
                    self._conclude(event, outcome)
                case Stop(request, leave):
                    self._stop(request, leave=leave)
                case Timer(request, seconds):
                    self._timers[request] = action
                    self.world.at(seconds, self.run, self._elapsed, action)

    def _elapsed(self, timer: Timer) -> None:
        if self._timers.get(timer.request) is timer:
            del self._timers[timer.request]
            self._carry_out(self._scheduler.elapsed(timer))

    def _perform(self, event: Event) -> None:
        at = event.position
        if event.data is ELSEWHERE:
            self.laws.elsewhere[at] = event
            self._offers.begin(at)
            return
        attended = event.data in (ATTENDED, URGENT)
        until = self.lease.until(attended=attended)
        if self.now() >= until:
            self.world.faults.note("a start is refused: its lease is over")
            self.world.at(0.01, self.run, self.performed, at, EffectFailed(request=at, error="LeaseOver", place="box"))
            return
        self.laws.starts(self, event)
        seconds = self.world.span(0.5, 8 if event.data is URGENT else 50)
        self._boxes[at] = Box(self, event.id, until, seconds, lambda how: self._box_ended(event, how), here=True)
        self._boxes[at].attended = attended

    def _box_ended(self, event: Event, how: str) -> None:
        self._boxes.pop(event.position, None)
        at = event.position
        outcome: msgspec.Struct | None = None
        if how == "done":
            outcome = (
                TimerFired(request=at)
                if event.data is REPEATED
                else EffectFailed(request=at, error="Done", place="box")
            )
        self.performed(at, outcome)

    def performed(self, at: int, outcome: msgspec.Struct | None) -> None:
        """An effect's performer has come back."""
        if self._scheduler.state(at) in ("running", "ending", "given up"):
            actions = self._scheduler.ended(at, outcome)
            self._carry_out(actions)
            self._carry_out(self._scheduler.recorded(at))

    def _stop(self, at: int, *, leave: bool) -> None:
        if at in self._boxes:
            self.world.at(self.world.span(0.01, 6), self._boxes[at].end)
        elif at in self._offers:
            self._offers.stop(at, leave=leave)

    # --- life ----------------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """An orderly stop."""
        self._obey(self.lease.stop(self.now()))
        if self.alive:
            self._carry_out(self._scheduler.stop())
            self._until_idle()

    def _until_idle(self) -> None:
        if self._scheduler.busy or self._waiting or self._batch is not None:
            self.world.at(0.5, self.run, self._until_idle)
        elif self._left is None:
            self._carry_out(self._scheduler.stopped())
            self.world.at(0.1, self.run, self._idle)
        else:
            self._idle()

    def _idle(self) -> None:
        if self._waiting or self._batch is not None:
            self.world.at(0.5, self.run, self._idle)
        else:
            self._obey(self.lease.idle(self.now()))

    def end(self, seconds: float) -> None:
        """The process is gone, and with it its boxes."""
        if self.alive:
            self.die(seconds)
            for box in [*self._boxes.values()]:
                box.end()
            self.laws.gone(self, seconds)
