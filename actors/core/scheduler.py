"""The life of an effect, from its durable request to the end of its performer (docs/design.md §4). Pure.

The scheduler decides when an effect is performed, when its performer is told to stop, and how the effect ends if the
performer does not say so. It has no clock, no tasks and no log: the runtime of the daemon and the machine of the
simulation feed it inputs, and carry out the actions that each input returns, in their order. Neither has a rule of its
own, so the simulation proves the rules that the daemon runs.

States of an effect (``STEPS`` has every permitted step):

- requested: the log has the request, durably; nothing was begun.
- held: it must not start yet: effects are paused, this process has not read the kernel's surfaces yet, or its lease is
  not live (``pmagent.events.lease``).
- queued: all places for effects of its type are taken.
- running: its performer was started; the timer is its limit, if it has one.
- ending: the performer was told to stop; the timer is the time it has for that.
- ended: the performer has come back; its outcome is being recorded.
- given up: the outcome was recorded without the performer, which keeps its place until it ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Final, Literal

import msgspec

from pmagent.actors.core.integrity import Inconsistent
from pmagent.actors.core.ledger import GATE, Cancel, EffectLedger, Unfinished
from pmagent.contracts.control import EffectsPaused, EffectsResumed
from pmagent.contracts.effect import EffectCancelled, EffectInterrupted, EffectTimedOut
from pmagent.contracts.payload import Effect, effect_of, is_outward, is_repeatable
from pmagent.events.event import Event

STOP_SECONDS: Final = 10.0
"""How long a performer may take to stop before its effect ends without it."""

State = Literal["requested", "held", "queued", "running", "ending", "ended", "given up", "forgotten"]
"""The state of an effect; forgotten: the scheduler has dropped it."""

STEPS: Final[Mapping[State, Sequence[State]]] = {
    "requested": ("held", "queued", "running", "forgotten"),
    "held": ("queued", "running", "forgotten"),
    "queued": ("held", "running", "forgotten"),
    "running": ("ending", "ended", "given up"),
    "ending": ("ended", "given up"),
    "ended": ("given up", "forgotten"),
    "given up": ("forgotten",),
    "forgotten": (),
}
"""The states that may follow each state."""

_AWAITED: Final = ("running", "ending", "ended")
"""States in which the effect's outcome is not recorded yet, and its performer may still give it."""

_PERFORMED: Final = (*_AWAITED, "given up")
"""States in which an effect counts against the concurrency of its type."""

_CHANGES: Final[dict[tuple[State, State], tuple[int, int]]] = {
    (before, after): ((after in _AWAITED) - (before in _AWAITED), (after in _PERFORMED) - (before in _PERFORMED))
    for before, permitted in STEPS.items() for after in permitted
}  # fmt: skip
"""Permitted step -> its change of the number of awaited effects, and of performed ones."""

_SWITCHES: Final = frozenset((EffectsPaused, EffectsResumed))


class Perform(msgspec.Struct, frozen=True, gc=False):
    """Start the performer of ``event``'s request; report ``ended`` when it has come back."""

    event: Event
    effect: Effect


class Stop(msgspec.Struct, frozen=True, gc=False):
    """Tell the performer of ``request`` to stop. ``leave``: what it follows goes on elsewhere, for the next process."""

    request: int
    leave: bool = False


class Timer(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Report ``elapsed`` with this object after ``seconds``. A later timer of the same ``request`` replaces it."""

    request: int
    seconds: float


class Conclude(msgspec.Struct, frozen=True, gc=False):
    """Append ``outcome`` as the terminal event of ``event``'s request, unless the request has one already."""

    event: Event
    outcome: msgspec.Struct


Action = Perform | Stop | Timer | Conclude


class _Life(msgspec.Struct, eq=False, gc=False):
    """An effect that the scheduler knows. ``reason``: why its performer was told to stop (stop: the process stops;
    lease: its lease is not live any more)."""

    event: Event
    effect: Effect
    state: State = "requested"
    reason: str = ""
    timer: Timer | None = None


def _nowhere(_: Event) -> bool:
    return False


class Scheduler:
    """The effects of one process. ``effects`` is the engine's ledger, which is ahead of the disk: an effect that has
    its terminal event there does not start any more. It has taken all that is durable already.

    Where several daemons can reach the log, ``live`` says whether this one's lease is live now, and ``elsewhere``
    whether an effect goes on outside of the process, under a lease of its own: its performer follows it, takes it up
    where an earlier process left it, and is given all the time that it needs to end it.

    Every input returns the actions that follow. They must be carried out, in their order, before the next input. An
    input that the states do not permit raises Inconsistent."""

    def __init__(
        self, effects: EffectLedger, live: Callable[[], bool] | None = None,
        elsewhere: Callable[[Event], bool] = _nowhere,
    ) -> None:
        self._effects = effects
        self._live = live
        self._elsewhere = elsewhere
        self._judged = live is None
        """Whether ``recovered`` has been told what earlier processes left open."""
        self._heard = False
        """Whether anything has become durable in this process."""
        self._lives: dict[int, _Life] = {}
        self._held: dict[int, _Life] = {}
        self._queues: dict[type, deque[_Life]] = {}
        self._running_by_type: dict[type, int] = {}
        """How many effects of a type are performed."""
        self._awaited = 0
        self._pressing = 0
        self._unread = False
        self._paused = effects.paused
        """Whether effects are paused as far as is durable; the ledger is ahead of that."""
        self._stopping = self._abandoned = False

    # --- questions ------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether the end of some effect still waits for its performer, or is being recorded."""
        return self._awaited > 0

    @property
    def pressing(self) -> bool:
        """Whether there is an outward effect (a task that runs, a device that types), or one that must be attended (a
        device that is armed has a ping to be sent): what concerns them must find the loop free."""
        return self._pressing > 0

    @property
    def unread(self) -> bool:
        """Whether outward effects wait for ``released``."""
        return self._unread

    def state(self, request: int) -> State:
        """The state of the effect that was requested at this position."""
        life = self._lives.get(request)
        return life.state if life is not None else "forgotten"

    def __len__(self) -> int:
        return len(self._lives)

    # --- inputs ---------------------------------------------------------------------------------------------------

    def recovered(self, unfinished: Unfinished, *, unread: bool) -> list[Action]:
        """The first input after a start, or with the first live lease: effects that an earlier process left open. Of
        those that it may have begun the repeatable ones start again, those elsewhere are taken up, the others end as
        interrupted. ``unread``: outward effects wait for ``released``, because the surfaces on which their permits were
        granted may have changed while nothing was running."""
        self._unread, self._judged = unread, True
        if not self._heard:
            self._paused = unfinished.paused
        actions: list[Action] = []
        for event in unfinished.held:
            self._start(self._know(event), actions)
        for event in unfinished.begun:
            cancelled = self._effects.cancelled.get(event.position)
            if self._elsewhere(event) and self._effects.is_open(event.position):
                life = self._know(event)
                self._perform(life, actions)  # also in a pause: it may be at work there, and has to be ended there
                if cancelled is not None:
                    self._tell_to_stop(life, cancelled, actions)
            elif cancelled is not None or is_repeatable(event.data):
                self._start(self._know(event), actions)
            elif self._effects.is_open(event.position):
                self._conclude(event, EffectInterrupted(request=event.position, reason="crash"), actions)
        return actions

    def durable(self, events: Sequence[Event], starts: Sequence[Event], cancels: Sequence[Cancel]) -> list[Action]:
        """A submission is durable: its ``events``, the effects requested in it, and what it cancels."""
        self._heard = True
        for event in events:
            if type(event.data) in _SWITCHES and event.actor == GATE and event.kind == "decision":
                self._paused = type(event.data) is EffectsPaused
        actions = self._let_go() if self._held else []
        for event in starts:
            self._start(self._know(event), actions)
        if cancels:
            concluded = {action.event.position for action in actions if isinstance(action, Conclude)}
            for cancel in {cancel.request: cancel for cancel in cancels}.values():
                if cancel.request not in concluded:
                    self._cancel(cancel, actions)
        return actions

    def released(self) -> list[Action]:
        """This process has read the surfaces: outward effects need not wait for that any more."""
        self._unread = False
        return self._let_go()

    def leased(self) -> list[Action]:
        """The lease is live again."""
        return self._let_go(leased=True)

    def lapsed(self, *, over: bool) -> list[Action]:
        """The lease is not live any more: performers of what must be attended are told to stop; when it is ``over``,
        all whose effects do not go on elsewhere. Effects that may be repeated start again under a live lease."""
        actions: list[Action] = []
        for life in self._lives.values():
            if life.state == "running" and (over or life.effect.attended) and not self._elsewhere(life.event):
                self._tell_to_stop(life, "lease", actions)
        return actions

    def elapsed(self, timer: Timer) -> list[Action]:
        """A timer's time is over. One that was replaced, or whose performer has come back, changes nothing."""
        life = self._lives.get(timer.request)
        if life is None or life.timer is not timer:
            return []
        expired, actions = life.state == "running", list[Action]()
        self._move(life, "given up")
        if expired:  # the effect ends now, whether or not the performer heeds being told to stop
            actions.append(Stop(timer.request))
            timed_out = EffectTimedOut(request=timer.request, limit_s=timer.seconds)
            self._conclude(life.event, timed_out, actions)
        else:
            self._cut_off(life, actions)
        return actions

    def ended(self, request: int, outcome: msgspec.Struct | None) -> list[Action]:
        """The performer of ``request`` has come back with ``outcome``; None: it was stopped before it had one. Report
        ``recorded`` next, whatever becomes of the actions."""
        life, actions = self._lives[request], list[Action]()
        life.timer = None
        if life.state == "given up":
            return actions
        self._move(life, "ended")
        if outcome is None:
            self._cut_off(life, actions)
        else:
            self._conclude(life.event, outcome, actions)
        return actions

    def recorded(self, request: int) -> list[Action]:
        """The performer of ``request`` has ended, and so has its effect: the place is free."""
        life, actions = self._lives[request], list[Action]()
        self._move(life, "forgotten")
        if life.reason == "lease" and life.effect.repeatable and self._effects.is_open(request):
            self._start(self._know(life.event), actions)
        cls = type(life.event.data)
        waiting = self._queues.get(cls)
        while waiting and self._running_by_type[cls] < waiting[0].effect.concurrency:
            if (first := waiting.popleft()).state == "queued":  # else it was ended while it waited
                self._start(first, actions)
        return actions

    def stop(self) -> list[Action]:
        """An orderly stop begins: nothing starts any more, and every performer is told to stop. Report ``stopped``
        when ``busy`` is false."""
        self._stopping = True
        actions: list[Action] = []
        for life in self._lives.values():
            if life.state == "running":
                self._tell_to_stop(life, "stop", actions)
            elif life.state == "ended":
                self._hurry(life, "stop", actions)
        return actions

    def stopped(self) -> list[Action]:
        """Every effect that was never started ends as interrupted, except those that wait for the end of a pause and
        those that are repeatable: they stay open for the next process."""
        actions: list[Action] = []
        for position, event in self._effects.open.items():
            mine = (self._judged or position in self._lives) and not self._elsewhere(event)
            if mine and position not in self._effects.held and not is_repeatable(event.data):
                self._conclude(event, EffectInterrupted(request=position, reason="stop"), actions)
        return actions

    def abandon(self) -> list[Action]:
        """The log or the engine has failed: every performer is told to stop, and nothing is concluded any more."""
        self._stopping = self._abandoned = True
        return [
            Stop(position, leave=self._elsewhere(life.event))
            for position, life in self._lives.items() if life.state in _PERFORMED
        ]

    # --- rules ----------------------------------------------------------------------------------------------------

    def _know(self, event: Event) -> _Life:
        effect = effect_of(event.data)
        if effect is None or event.position in self._lives:
            raise Inconsistent("an effect is to start that is known already, or that is none")
        life = self._lives[event.position] = _Life(event, effect)
        self._pressing += _presses(life)
        return life

    def _move(self, life: _Life, state: State) -> None:
        """Take a step."""
        before = life.state
        change = _CHANGES.get((before, state))
        if change is None:
            raise Inconsistent(f"an effect that is {before} becomes {state}")
        life.state = state
        awaited, performed = change
        if performed:
            cls = type(life.event.data)
            self._running_by_type[cls] = self._running_by_type.get(cls, 0) + performed
        self._awaited += awaited
        if state == "forgotten":
            del self._lives[life.event.position]
            self._pressing -= _presses(life)
        elif state == "held":
            self._held[life.event.position] = life
        elif state == "queued":
            self._queues.setdefault(type(life.event.data), deque()).append(life)
        if before == "held":
            del self._held[life.event.position]

    def _start(self, life: _Life, actions: list[Action]) -> None:
        """Perform an effect that was requested, held or queued, or let it wait."""
        position, data = life.event.position, life.event.data
        if self._stopping or not self._effects.is_open(position):
            self._move(life, "forgotten")
            return
        cancelled = self._effects.cancelled.get(position)
        if cancelled is not None:  # decided while the request was being written, or before a crash
            self._drop(life, cancelled, actions)
        elif self._live is not None and not self._live():
            if is_outward(data) and not data.waits:
                self._drop(life, "lease", actions)
            elif life.state != "held":
                self._move(life, "held")
        elif (self._unread or self._shut) and is_outward(data):
            if self._shut and not data.waits:
                self._drop(life, "paused", actions)
            elif life.state != "held":
                self._move(life, "held")
        elif self._running_by_type.get(type(data), 0) >= life.effect.concurrency:
            self._move(life, "queued")
        else:
            self._perform(life, actions)

    def _perform(self, life: _Life, actions: list[Action]) -> None:
        self._move(life, "running")
        actions.append(Perform(life.event, life.effect))
        if life.effect.limit_s is not None and not self._elsewhere(life.event):
            self._time(life, life.effect.limit_s, actions)

    @property
    def _shut(self) -> bool:
        return self._paused or self._effects.paused

    def _let_go(self, *, leased: bool = False) -> list[Action]:
        """Start what is held, in the order of the requests, if it may start by now."""
        actions: list[Action] = []
        if leased or (not self._unread and not self._shut):
            held = sorted(self._held.values(), key=attrgetter("event.position"))  # some were queued before
            for life in held:
                self._start(life, actions)
        return actions

    def _cancel(self, cancel: Cancel, actions: list[Action]) -> None:
        life, event = self._lives.get(cancel.request), self._effects.open.get(cancel.request)
        if life is None:
            if event is not None and self._judged and not self._elsewhere(event):  # it was not to start any more
                self._conclude(event, EffectCancelled(request=cancel.request, reason=cancel.reason), actions)
        elif life.state in ("held", "queued"):
            self._drop(life, cancel.reason, actions)
        elif life.state == "running":
            self._tell_to_stop(life, cancel.reason, actions)
        elif life.state == "ended":
            self._hurry(life, cancel.reason, actions)
        elif life.state == "ending":
            life.reason = cancel.reason

    def _tell_to_stop(self, life: _Life, reason: str, actions: list[Action]) -> None:
        self._move(life, "ending")
        life.reason = reason
        elsewhere = self._elsewhere(life.event)
        actions.append(Stop(life.event.position, leave=elsewhere and reason == "stop"))
        if not elsewhere:
            self._time(life, STOP_SECONDS, actions)

    def _hurry(self, life: _Life, reason: str, actions: list[Action]) -> None:
        """To record an outcome may hang, too: no longer than a performer that was told to stop."""
        if life.timer is None:
            life.reason = reason
            self._time(life, STOP_SECONDS, actions)

    def _time(self, life: _Life, seconds: float, actions: list[Action]) -> None:
        life.timer = Timer(life.event.position, seconds)
        actions.append(life.timer)

    def _drop(self, life: _Life, reason: str, actions: list[Action]) -> None:
        """End an effect that has not been started."""
        self._move(life, "forgotten")
        self._conclude(life.event, EffectCancelled(request=life.event.position, reason=reason), actions)

    def _cut_off(self, life: _Life, actions: list[Action]) -> None:
        """End an effect whose performer was told to stop and did not say how it ended. In an orderly stop, and where
        the lease ends, a repeatable one stays open and is performed again; one elsewhere goes on."""
        position = life.event.position
        if life.reason not in ("stop", "lease"):
            self._conclude(life.event, EffectCancelled(request=position, reason=life.reason), actions)
        elif not life.effect.repeatable and not self._elsewhere(life.event):
            self._conclude(life.event, EffectInterrupted(request=position, reason=life.reason), actions)

    def _conclude(self, event: Event, outcome: msgspec.Struct, actions: list[Action]) -> None:
        if not self._abandoned:
            actions.append(Conclude(event, outcome))


def _presses(life: _Life) -> bool:
    return life.effect.attended or is_outward(life.event.data)
