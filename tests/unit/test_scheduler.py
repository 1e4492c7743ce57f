"""The scheduler, by traces: each file in ``scheduler_traces`` is a conversation with it.

A line is an input, the indented lines below it are the actions that must follow from it, in their order. With
PMAGENT_WRITE_TRACES=1 the files are written anew from what the scheduler answers; look at the difference.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.core.integrity import Inconsistent
from pmagent.actors.core.ledger import GATE, Cancel, EffectLedger, Unfinished
from pmagent.actors.core.scheduler import STEPS, Action, Conclude, Perform, Scheduler, Stop, Timer
from pmagent.contracts.control import EffectsPaused, EffectsResumed
from pmagent.contracts.effect import EffectCancelRequested
from pmagent.contracts.payload import encode, type_of
from pmagent.events.event import Event
from tests.support.cases import each
from tests.support.live import AgainRequested, OnceRequested, ShortRequested
from tests.support.toys import Done, FetchRequested

TRACES = Path(__file__).with_name("scheduler_traces")
KINDS: dict[str, Any] = {
    "once": OnceRequested, "again": AgainRequested, "short": ShortRequested, "fetch": FetchRequested,
}  # fmt: skip


def elsewhere(event: Event) -> bool:
    """Whether an effect goes on outside of the process."""
    return isinstance(event.data, OnceRequested) and event.data.n > 1


class Talk:
    """A scheduler, its ledger, and events whose positions a trace names."""

    def __init__(self) -> None:
        self.ledger = EffectLedger()
        self.scheduler = Scheduler(self.ledger)
        self.live, self.left = True, Unfinished()
        self.timers: dict[int, Timer] = {}
        self.events: dict[int, Event] = {}
        self.submitted: list[tuple[list[Event], list[Event], list[Cancel]]] = []
        self.position = 0

    def say(self, words: Sequence[str]) -> list[Action]:
        """Give the input that a line names."""
        match words:
            case ["decide", *decisions]:  # decided, and on its way to the disk
                self._decide(decisions)
                return []
            case ["durable"]:
                return self.scheduler.durable(*self.submitted.pop(0))
            case ["ended", request, *stopped]:
                return self.scheduler.ended(int(request), None if stopped else Done(n=1))
            case ["recorded", request]:
                return self.scheduler.recorded(int(request))
            case ["elapsed", request]:
                return self.scheduler.elapsed(self.timers[int(request)])
            case ["crash", *unread]:
                unfinished = self.ledger.unfinished()
                self.scheduler, self.submitted = Scheduler(self.ledger), []
                return self.scheduler.recovered(unfinished, unread=bool(unread))
            case ["shared", *dead]:  # by several daemons
                self.live, self.submitted, self.left = not dead, [], self.ledger.unfinished()
                self.scheduler = Scheduler(self.ledger, lambda: self.live, elsewhere)
                return []
            case ["judge"]:
                return self.scheduler.recovered(self.left, unread=False)
            case ["lease"]:
                self.live = True
                return self.scheduler.leased()
            case ["lapsed" | "over" as word]:
                self.live = False
                return self.scheduler.lapsed(over=word == "over")
            case [("released" | "stop" | "stopped" | "abandon") as name]:
                answer: list[Action] = getattr(self.scheduler, name)()
                return answer
        raise ValueError(words)

    def _decide(self, decisions: Sequence[str]) -> None:
        events: list[Event] = []
        starts: list[Event] = []
        cancels: list[Cancel] = []
        for word in decisions:
            payload: Any
            name, _, number = word.partition(":")
            if name in KINDS:
                payload = KINDS[name](n=1, permit=1) if name == "fetch" else KINDS[name](n=1)
            elif name == "far":
                payload = OnceRequested(n=2)
            elif name == "cancel":
                payload = EffectCancelRequested(request=int(number))
            else:
                payload = (EffectsPaused if name == "pause" else EffectsResumed)(**SWITCH[name])
            self.position += 1
            actor = GATE if name in SWITCH else "boss"
            event = Event(self.position, "", "", "decision", actor, type_of(payload), "", 0, payload, encode(payload))
            events.append(event)
            self.events[self.position] = event
            begun, ended = self.ledger.book(event)
            starts += begun
            cancels += ended
        self.submitted.append((events, starts, cancels))

    def carry_out(self, actions: Sequence[Action]) -> list[str]:
        """Do what the actions say to the ledger; the actions in words."""
        said = []
        for action in actions:
            match action:
                case Perform(event):
                    said.append(f"perform {event.position}")
                case Stop(request):
                    said.append(f"stop {request}" + (" and leave it" if action.leave else ""))
                case Timer(request, seconds):
                    self.timers[request] = action
                    said.append(f"timer {request} {seconds:g} s")
                case Conclude(event, outcome):
                    if not self.ledger.is_open(event.position):
                        said.append(f"conclude {event.position} too late")
                        continue
                    self.position += 1
                    name, at = type_of(outcome), event.position
                    self.ledger.book(Event(self.position, "", "", "fact", "toy", name, "", at, outcome, b""))
                    fields = msgspec.structs.asdict(outcome)
                    why = next((str(fields[name]) for name in ("reason", "error") if name in fields), "")
                    said.append(f"conclude {at} {name} {why}".rstrip())
        return said


SWITCH: dict[str, dict[str, Any]] = {
    "pause": {"request": 1, "since": 1, "operator_id": "ada", "channel": "cli", "reason": ""},
    "resume": {"request": 1, "since": 1, "held": 0, "operator_id": "ada", "channel": "cli"},
}


def answered(text: str) -> str:
    """The trace with the actions that the scheduler answers now."""
    talk = Talk()
    lines = []
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            words = line.split()
            try:
                said = talk.carry_out(talk.say(words))
            except Inconsistent as error:
                said = [f"inconsistent: {error}"]
            lines += [f"  {one}" for one in said]
    return "\n".join(lines) + "\n"


@each("name", sorted(path.name for path in TRACES.glob("*.txt")))
def test_a_trace_is_answered_as_it_is_written(name: str) -> None:
    path = TRACES / name
    text = path.read_text("utf-8")
    found = answered(text)
    if os.environ.get("PMAGENT_WRITE_TRACES") == "1":
        path.write_text(found, "utf-8")
    assert found == text


def test_every_step_of_the_table_leads_to_a_state_of_it() -> None:
    assert {state for states in STEPS.values() for state in states} < {*STEPS}


class Life:
    """A conversation that chance makes, and what must hold in it."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.talk = Talk()
        self.running: dict[int, bool] = {}
        """Effects that are performed, and whether they were told to stop."""
        self._performed: set[int] = set()
        self._timers: list[Timer] = []

    def give(self, *words: str) -> None:
        """Give an input, and look at what follows. The ledger refuses a second end."""
        ledger = self.talk.ledger
        actions = self.talk.say(words)
        concluded = [action.event.position for action in actions if isinstance(action, Conclude)]
        assert len(set(concluded)) == len(concluded)
        for action in actions:
            match action:
                case Perform(event):
                    assert event.position not in self._performed
                    assert not (ledger.paused and isinstance(event.data, FetchRequested))
                    self._performed.add(event.position)
                    self.running[event.position] = False
                case Stop(request):
                    self.running[request] = True
                case Timer():
                    self._timers.append(action)
        self.talk.carry_out(actions)
        kinds = [type(self.talk.events[request].data) for request in self.running]
        assert max(map(kinds.count, kinds), default=0) <= 2

    def decide(self) -> None:
        """Requests, cancellations, a pause."""
        words = [*KINDS, "pause", "resume", *(f"cancel:{request}" for request in self.talk.ledger.open)]
        self.give("decide", *self.data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=3)))

    def durable(self) -> None:
        """The decisions that wait longest are durable."""
        if self.talk.submitted:
            self.give("durable")

    def ended(self) -> None:
        """A performer comes back; one that was told to stop may have an outcome all the same."""
        if self.running:
            request = self.data.draw(st.sampled_from(sorted(self.running)))
            self.end(request, stopped=self.running[request] and self.data.draw(st.booleans()))

    def end(self, request: int, *, stopped: bool) -> None:
        """The performer of ``request`` comes back."""
        del self.running[request]
        self.give("ended", str(request), *(["stopped"] if stopped else []))
        self.give("recorded", str(request))

    def elapsed(self) -> None:
        """A timer's time is over; it may have been replaced."""
        if self._timers:
            timer = self._timers.pop(self.data.draw(st.integers(0, len(self._timers) - 1)))
            self.talk.timers[timer.request] = timer
            self.give("elapsed", str(timer.request))


@given(st.data())
def test_whatever_happens_each_effect_is_performed_once_in_a_process_and_ends_once(data: st.DataObject) -> None:
    life = Life(data)
    for _ in range(data.draw(st.integers(1, 40))):
        data.draw(st.sampled_from([life.decide, life.durable, life.ended, life.elapsed]))()
    while life.talk.submitted:
        life.durable()
    life.give("stop")
    for request in sorted(life.running):
        life.end(request, stopped=True)
    assert not life.talk.scheduler.busy
    life.give("stopped")
    ledger = life.talk.ledger
    left = {type(event.data) for at, event in ledger.open.items() if at not in ledger.held}
    assert left <= {AgainRequested, FetchRequested}, "what may be performed again"
