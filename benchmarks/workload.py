"""The material of measurements: event types, an actor that works in steps, and logs of a given length.

A step is six events, as in the histories that Temporal's replayer was measured with: a fact asks for it, the actor
decides and requests an effect, its outcome comes as a fact, the actor notes it and requests a second effect, whose
outcome ends the step. So half of the log are decisions, and a third of it are effects' outcomes.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from pmagent.actors.core.engine import Engine, Output
from pmagent.contracts.payload import Effect, Payload, encode, event_type, type_of
from pmagent.events.commit import Committer
from pmagent.events.event import Draft, Event
from pmagent.events.log import now, opening_events
from pmagent.events.segment_log import SegmentLog
from pmagent.events.sequencer import Sequencer
from pmagent.events.storage import Storage

DATA_BYTES = 256
"""Length of a fact's encoded data, as in the peers' measurements."""

_BATCH = 512


@event_type("bench.noted")
class Noted(Payload, frozen=True, kw_only=True):
    """A fact that nobody hears."""

    n: int
    note: str


@event_type("bench.step_asked")
class StepAsked(Payload, frozen=True, kw_only=True):
    """Step ``n`` is to be done."""

    n: int
    note: str


@event_type(
    "bench.step_requested", effect=Effect(repeatable=True, concurrency=100_000, outcomes=("bench.step_done",))
)
class StepRequested(Payload, frozen=True, kw_only=True):
    """First effect of a step."""

    n: int


@event_type("bench.step_done")
class StepDone(Payload, frozen=True, kw_only=True):
    """Outcome of the first effect."""

    n: int
    result: str


@event_type("bench.step_noted")
class StepNoted(Payload, frozen=True, kw_only=True):
    """The actor's note of the outcome."""

    n: int
    done: int


@event_type(
    "bench.record_requested", effect=Effect(repeatable=True, concurrency=100_000, outcomes=("bench.record_done",))
)
class RecordRequested(Payload, frozen=True, kw_only=True):
    """Second effect of a step."""

    n: int
    result: str


@event_type("bench.record_done")
class RecordDone(Payload, frozen=True, kw_only=True):
    """Outcome of the second effect."""

    n: int


class StepsState(msgspec.Struct, frozen=True):
    """How many steps were asked for, done and recorded, and the newest result."""

    asked: int = 0
    done: int = 0
    recorded: int = 0
    result: str = ""


class Steps:
    """Does each step that is asked for."""

    name = "steps"
    hears: frozenset[type[msgspec.Struct]] = frozenset((StepAsked, StepDone, RecordDone))

    def initial(self) -> StepsState:
        """Nothing done."""
        return StepsState()

    def evolve(self, state: StepsState, event: Event) -> StepsState:
        """Count."""
        data = event.data
        if isinstance(data, StepAsked):
            return StepsState(state.asked + 1, state.done, state.recorded, state.result)
        if isinstance(data, StepDone):
            return StepsState(state.asked, state.done + 1, state.recorded, data.result)
        if isinstance(data, RecordDone):
            return StepsState(state.asked, state.done, state.recorded + 1, state.result)
        return state

    def decide(self, state: StepsState, event: Event) -> Iterable[Payload]:
        """The next part of the step."""
        data = event.data
        if isinstance(data, StepAsked):
            return (StepRequested(n=data.n),)
        if isinstance(data, StepDone):
            return (StepNoted(n=data.n, done=state.done), RecordRequested(n=data.n, result=data.result))
        return ()


def note(n: int) -> str:
    """Text that makes the data of ``Noted`` and ``StepAsked`` number ``n`` ``DATA_BYTES`` long."""
    return f"{n:07d} ".ljust(DATA_BYTES - len(f'{{"n":{n},"note":""}}'), "abcdefg "[n % 8])


def draft(payload: msgspec.Struct, id: str, actor: str = "bench", causation: int = 0) -> Draft:
    """A fact."""
    return Draft(type_of(payload), payload, encode(payload), id, actor, "", causation)


def outcome(request: Event) -> Draft:
    """The answer of the performer of ``request``."""
    data = request.data
    done: msgspec.Struct
    if isinstance(data, StepRequested):
        done = StepDone(n=data.n, result=f"result of step {data.n}")
    else:
        done = RecordDone(n=data.n)
    return draft(done, f"{request.position}.outcome", causation=request.position)


def open_new(folder: Path, at: str = "") -> tuple[Storage, Committer, Sequencer]:
    """A new log in ``folder`` with its first event, of time ``at`` (default: now)."""
    storage = SegmentLog(str(folder)).open()
    sequencer = Sequencer(storage.tail())
    committer = Committer(storage)
    committer.submit(opening_events(storage, storage.log_id(), storage.recovered, sequencer, at or now()))
    committer.commit()
    return storage, committer, sequencer


def write_notes(folder: Path, events: int) -> None:
    """A log of ``events`` facts of ``DATA_BYTES`` each."""
    storage, committer, sequencer = open_new(folder)
    for n in range(events - 1):
        committer.submit((sequencer.admit(draft(Noted(n=n, note=note(n)), f"note-{n}"), now()),))
        if n % _BATCH == 0:
            committer.commit()
    committer.commit()
    storage.close()


def write_steps(folder: Path, events: int) -> None:
    """A log of about ``events`` events: whole steps, decided by the engine."""
    storage, committer, sequencer = open_new(folder)
    engine = Engine([Steps()], sequencer)
    steps = (events - 1) // 6
    for n in range(steps):
        _finish(engine, committer, engine.accept(draft(StepAsked(n=n, note=note(n)), f"step-{n}"), now()))
        if n % (_BATCH // 6) == 0:
            committer.commit()
    committer.commit()
    storage.close()


def _finish(engine: Engine, committer: Committer, out: Output | None) -> None:
    """Append what was decided, and let every effect that follows end at once."""
    while out is not None:
        committer.submit(out.events)
        starts = out.starts
        out = None
        for request in starts:
            out = engine.finish(request.position, outcome(request), now())


class Clock:
    """A log clock that runs ahead by ``step`` seconds an event, so that a long log spans a long time. It begins so
    early that ``events`` events end now."""

    def __init__(self, events: int, step: float) -> None:
        self._at = time.time() - events * step
        self._step = step

    def __call__(self) -> str:
        """The next moment, as the log writes it."""
        self._at += self._step
        whole = int(self._at)
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int((self._at - whole) * 1e6):06d}Z"
