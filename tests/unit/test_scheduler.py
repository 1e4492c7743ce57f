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
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.integrity import Inconsistent
from actors.ledger import GATE, Cancel, EffectLedger
from actors.scheduler import STEPS, Action, Conclude, Perform, Scheduler, Stop, Timer
from contracts.control import EffectsPaused, EffectsResumed
from contracts.effect import EffectCancelRequested
from contracts.payload import encode, type_of
from events.event import Event
from tests.support.live import AgainRequested, OnceRequested, ShortRequested
from tests.support.toys import Done, FetchRequested

TRACES = Path(__file__).with_name("scheduler_traces")
KINDS: dict[str, Any] = {
    "once": OnceRequested, "again": AgainRequested, "short": ShortRequested, "fetch": FetchRequested,
}  # fmt: skip


class Talk:
    """A scheduler, its ledger, and events whose positions a trace names."""

    def __init__(self) -> None:
        self.ledger = EffectLedger()
        self.scheduler = Scheduler(self.ledger)
        self.timers: dict[int, Timer] = {}
        self.events: dict[int, Event] = {}
        self._submitted: list[tuple[list[Event], list[Event], list[Cancel]]] = []
        self.position = 0

    def say(self, words: Sequence[str]) -> list[Action]:
        """Give the input that a line names."""
        match words:
            case ["decide", *decisions]:  # decided, and on its way to the disk
                self._decide(decisions)
                return []
            case ["durable"]:
                return self.scheduler.durable(*self._submitted.pop(0))
            case ["ended", request, *stopped]:
                return self.scheduler.ended(int(request), None if stopped else Done(n=1))
            case ["recorded", request]:
                return self.scheduler.recorded(int(request))
            case ["elapsed", request]:
                return self.scheduler.elapsed(self.timers[int(request)])
            case ["crash", *unread]:
                unfinished = self.ledger.unfinished()
                self.scheduler, self._submitted = Scheduler(self.ledger), []
                return self.scheduler.recovered(unfinished, unread=bool(unread))
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
        self._submitted.append((events, starts, cancels))

    def carry_out(self, actions: Sequence[Action]) -> list[str]:
        """Do what the actions say to the ledger; the actions in words."""
        said = []
        for action in actions:
            match action:
                case Perform(event):
                    said.append(f"perform {event.position}")
                case Stop(request):
                    said.append(f"stop {request}")
                case Timer(request, seconds):
                    self.timers[request] = action
                    said.append(f"timer {request} {seconds:g} s")
                case Conclude(event, outcome):
                    if not self.ledger.is_open(event.position):
                        said.append(f"conclude {event.position} too late")
                        continue
                    self.position += 1
                    fact = Event(self.position, "", "", "fact", "toy", type_of(outcome), "", event.position, outcome, b"")
                    self.ledger.book(fact)
                    fields = msgspec.structs.asdict(outcome)
                    why = next((str(fields[name]) for name in ("reason", "error") if name in fields), "")
                    said.append(f"conclude {event.position} {type_of(outcome)} {why}".rstrip())
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


@pytest.mark.parametrize("name", sorted(path.name for path in TRACES.glob("*.txt")))
def test_a_trace_is_answered_as_it_is_written(name: str) -> None:
    path = TRACES / name
    text = path.read_text("utf-8")
    found = answered(text)
    if os.environ.get("PMAGENT_WRITE_TRACES") == "1":
        path.write_text(found, "utf-8")
    assert found == text


def test_every_step_of_the_table_leads_to_a_state_of_it() -> None:
    assert {state for states in STEPS.values() for state in states} < {*STEPS}


@given(st.data())
def test_whatever_happens_each_effect_is_performed_once_in_a_process_and_ends_once(data: st.DataObject) -> None:
    """Chance chooses inputs that are possible; the ledger refuses a second end, and the scheduler its own mistakes."""
    talk = Talk()
    performed: set[int] = set()
    running: dict[int, bool] = {}  # whether it was told to stop
    timers: list[Timer] = []
    ends: dict[int, int] = {}

    def give(*words: str) -> None:
        actions = talk.say(words)
        for action in actions:
            match action:
                case Perform(event):
                    assert event.position not in performed
                    assert not (talk.ledger.paused and isinstance(event.data, FetchRequested))
                    performed.add(event.position)
                    running[event.position] = False
                case Stop(request):
                    running[request] = True
                case Timer():
                    timers.append(action)
                case Conclude(event):
                    ends[event.position] = ends.get(event.position, 0) + talk.ledger.is_open(event.position)
        talk.carry_out(actions)
        kinds = [type(talk.events[request].data) for request in running]
        assert max(map(kinds.count, kinds), default=0) <= 2

    for _ in range(data.draw(st.integers(1, 40))):
        choices = ["decide", "durable", "ended", "elapsed", "released"]
        match data.draw(st.sampled_from(choices)):
            case "decide":
                words = [*KINDS, "pause", "resume", *(f"cancel:{request}" for request in talk.ledger.open)]
                give("decide", *data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=3)))
            case "durable" if talk._submitted:
                give("durable")
            case "ended" if running:
                request = data.draw(st.sampled_from(sorted(running)))
                stopped = running.pop(request) and data.draw(st.booleans())
                give("ended", str(request), *(["stopped"] if stopped else []))
                give("recorded", str(request))
            case "elapsed" if timers:
                timer = timers.pop(data.draw(st.integers(0, len(timers) - 1)))
                talk.timers[timer.request] = timer
                give("elapsed", str(timer.request))
            case "released":
                give("released")
    while talk._submitted:
        give("durable")
    give("stop")
    for request in sorted(running):
        give("ended", str(request), "stopped")
        give("recorded", str(request))
    assert not talk.scheduler.busy
    give("stopped")
    assert set(ends.values()) <= {0, 1}
    left = {type(event.data) for at, event in talk.ledger.open.items() if at not in talk.ledger.held}
    assert left <= {AgainRequested, FetchRequested}, "what may be performed again"
