"""The engine: facts in; lines to append and effects that may start out (docs/design.md §3.2). Sans-I/O.

No asyncio, no clock, no files: the daemon drives it with anyio (``pmagent.actors.core.runtime``); recovery, replay,
simulation and tests drive it directly. The rules:

1. An event is taken by every actor that hears it, in the order in which the actors were registered, the gate first.
   An actor's own decisions are folded into its state right after the input that caused them.
2. The decisions on one event are appended before any decision on a later event. So decisions stand in the log in the
   order of their causes, and while the log is read back it is known when a reaction is complete: when a decision
   with a later cause, or the next fact, comes.
3. A fact is accepted only when everything that followed from the one before it has been decided. So a crash can cut
   only the last reaction short, and recovery completes that one.
4. ``log.*`` events are the log's own remarks: no actor hears them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from pmagent.actors.core.actor import AnyActor
from pmagent.actors.core.authority import authority_of
from pmagent.actors.core.gate import Gate, Permit, refusal
from pmagent.actors.core.integrity import (
    ENGINE,
    EngineBroken,
    Inconsistent,
    NotItsOutcome,
    ReactionTooLarge,
    check_gate,
    describe_failure,
    described,
    refuses,
)  # fmt: skip
from pmagent.actors.core.ledger import GATE, Cancel, EffectLedger
from pmagent.actors.core.recorded import RecordedReaction, Witness
from pmagent.actors.core.subscribers import Subscribers
from pmagent.contracts.effect import ActorHalted, ActorResumed, EffectRefused, RequestRefused, may_end
from pmagent.contracts.payload import (
    Correlated,
    OutwardRequest,
    decode,
    effect_of,
    encode,
    is_outward,
    is_request,
    requests_effect,
    type_of,
)
from pmagent.events.errors import BadEvent, PmagentError
from pmagent.events.event import DATA_BYTES_MAX, Draft, Event, Tail
from pmagent.events.line import check_texts
from pmagent.events.sequencer import RECENT_FACTS_MAX, Sequencer

DECISIONS_MAX: Final = 10_000
"""Upper bound of what may follow from one fact; the actor that goes beyond it is halted. Only the gate may go beyond
it: its verdict on a request is never the one too many."""


class HistoryError(PmagentError, exit_code=70):
    """The recorded history cannot be folded by this code: a decision without its cause, or an actor that cannot
    fold an event that it folded before."""


class Output(msgspec.Struct):
    """The output for one input, to be acted on in this order: ``events`` are appended, together and in order; when
    they are durable, ``starts`` (the requests among them) may be performed and ``cancels`` are carried out."""

    events: list[Event]
    starts: list[Event]
    cancels: list[Cancel]


class Reaction(msgspec.Struct):
    """One actor's reaction to one event: ``decisions`` (the actor's own, then the engine's about it), and
    the actor's state with its own decisions folded in."""

    decisions: list[Event]
    after: Any


class Engine:
    """Runs ``actors`` over the events that ``sequencer`` numbers.

    Live: ``accept`` facts, ``finish`` effects. Recovery: ``fold`` every recorded event in order, then ``complete``.
    """

    def __init__(self, actors: Sequence[AnyActor], sequencer: Sequencer, witness: Witness | None = None) -> None:
        self.sequencer = sequencer
        authority = authority_of(actors)
        self.actors: list[AnyActor] = [Gate(authority), *actors]
        self.states: dict[str, Any] = {actor.name: actor.initial() for actor in self.actors}
        if len(self.states) != len(self.actors) or ENGINE in self.states:
            raise ValueError("actors need different names")
        self.halted: dict[str, int] = {}
        """Halted actors, with the position of the input on which each was halted."""
        self.exported: dict[str, tuple[Any, bytes]] = {}
        """The smaller states as they were exported last (``pmagent.actors.core.snapshot``); most are the same at the
        next time."""
        self.effects = EffectLedger((GATE, ENGINE), authority)
        self._booked: dict[type, bool] = {}
        """Whether recorded decisions of a type concern the books."""
        self._slots = {actor.name: index for index, actor in enumerate(self.actors)}
        self._subscribers = Subscribers(self.actors)
        self._queue: deque[Event] = deque()
        self._fact = 0  # position of the fact from which everything now follows
        self._facts: deque[tuple[str, int]] = deque(maxlen=RECENT_FACTS_MAX)  # that were folded
        self._reading: RecordedReaction | None = None
        self._witness = witness
        self._end_matters = witness is not None  # or an actor could not fold the event of the current reaction
        self._whole = True  # no reaction was left unfinished; set before it begins, so that nothing can slip past
        self._cause = "it was entered twice"
        self._outward: list[Event] = []  # the outward requests of the reaction that is going on

    def copy(self, actors: Sequence[AnyActor], witness: Witness | None = None) -> Engine:
        """Another engine of the same ``actors`` that has folded the same events and goes on by itself; states are
        immutable, so both hold them. Raises ValueError for an engine that is broken, or has a witness to what it
        reads."""
        if not self._whole or (self._witness is not None and self._reading is not None):
            raise ValueError("an engine that is broken, or reads back for a witness, cannot be copied")
        other = Engine(actors, Sequencer(Tail(self.sequencer.position), self.sequencer.recent()), witness)
        other.sequencer.time = self.sequencer.time
        other.states.update(self.states)
        other.halted.update(self.halted)
        mine, its = self.effects, other.effects
        its.open, its.cancelled, its.held = dict(mine.open), dict(mine.cancelled), dict(mine.held)
        its.paused = mine.paused
        other._queue.extend(self._queue)
        other._fact = self._fact
        other._facts.extend(self._facts)
        other._end_matters |= self._end_matters
        if self._reading is not None:
            other._reading = msgspec.structs.replace(self._reading, states=list(self._reading.states))
        return other

    # --- live -------------------------------------------------------------------------------------------------

    @property
    def broken(self) -> EngineBroken | None:
        """Why the engine takes nothing more; None while it does."""
        return None if self._whole else EngineBroken(self._cause)

    def accept(self, draft: Draft, now: str) -> Output | None:
        """Take a fact and decide all that follows. None when the fact stands in the log already. Raises BadEvent,
        NotItsOutcome (nothing has happened then), EngineBroken; whatever else it raises breaks the engine."""
        if not self._whole:
            raise EngineBroken(self._cause)
        if self.sequencer.seen(draft.id) is not None:
            return None
        ended = self.effects.open.get(draft.causation)
        if ended is not None and not may_end(ended.data, draft.data):
            what = f"{draft.type} is no outcome that {ended.type} (position {ended.position}) declares"
            raise NotItsOutcome(what, "declare it with the request's effect, or name another cause")
        position, self._whole = self.sequencer.position, False
        try:
            event = self.sequencer.admit(draft, now)
            self._fact = event.position
            out = Output([event], [], [])
            permits = self.states[GATE].permits
            self._book(event, out)
            self._queue.append(event)
            self._run(out)
            self._verify(position, permits, out)
        except BaseException as error:
            self._whole = isinstance(error, BadEvent) and self.sequencer.position == position
            self._cause = described(error)
            raise
        self._whole = True
        return out

    def finish(self, request: int, draft: Draft, now: str) -> Output | None:
        """Take the outcome of the effect requested at ``request``. None when it has one already: each effect ends
        with exactly one terminal event."""
        if not self.effects.is_open(request) or draft.causation != request:
            return None
        return self.accept(draft, now)

    def _run(self, out: Output) -> None:
        """React to what waits, and to what follows from it, until nothing does."""
        while self._queue:
            event = self._queue.popleft()
            engine_decisions = 0
            for name, evolve, actor in self._subscribers.of(event):
                state, failure = self.states[name], None
                try:
                    state = evolve(state, event)
                except Exception as error:  # an actor whose code raises is halted, and only it (docs/design.md §3.3)
                    failure = error
                reaction = self.react(actor, state, event, failure, engine_decisions)
                self.states[name] = reaction.after
                for decision in reaction.decisions:
                    engine_decisions += decision.actor == ENGINE
                    self._append(decision, out)
        if out.starts:  # without those that the gate refused
            out.starts = [event for event in out.starts if self.effects.is_open(event.position)]

    def _verify(self, position: int, permits: Mapping[int, Permit], out: Output) -> None:
        """Check a reaction: what stood at ``position`` before it, with these ``permits``. Raises Inconsistent."""
        if position + len(out.events) != self.sequencer.position:  # each of its events was looked at by itself
            raise Inconsistent("the positions of a reaction do not follow")
        if self._outward:
            outward, self._outward = self._outward, []
            if GATE not in self.halted:
                check_gate(permits, self.states[GATE].permits, outward, out.events, self.effects)

    def react(
        self, actor: AnyActor, state: Any, event: Event, failure: Exception | None, engine_decisions: int
    ) -> Reaction:
        """The reaction of ``actor`` to ``event``, which its ``state`` includes (unless folding failed).

        Pure; changes nothing here. ``engine_decisions`` is how many the engine itself has made on this event. When the
        actor raises, nothing of what it began to decide counts.
        """
        name = actor.name
        position = self.sequencer.position
        halted = name in self.halted and self.halted[name] != event.position
        after = state
        events: list[Event] = []
        if failure is None and not halted:
            try:
                for payload in actor.decide(state, event):
                    at = position + len(events) + 1
                    decision = self._decision(event, name, len(events), payload, at)
                    # Consequences of the fact are found by position, so that a crash in between changes nothing.
                    if len(decision.raw) > DATA_BYTES_MAX or (at >= self._fact + DECISIONS_MAX and name != GATE):
                        raise ReactionTooLarge(name)
                    if self.effects.full and effect_of(decision.data) is not None:
                        raise ReactionTooLarge(name)
                    events.append(decision)
                    after = actor.evolve(after, decision)
            except Exception as error:  # as in _run
                failure, events, after = error, [], state
        if failure is not None or halted:
            for own in _consequences(name, event, None if halted else failure):
                n = engine_decisions + len(events)
                events.append(self._decision(event, ENGINE, n, own, position + len(events) + 1))
        return Reaction(events, after)

    def _decision(self, cause: Event, actor: str, n: int, payload: Any, position: int) -> Event:
        """A decision in its place. Its payload is read back from its bytes: what actors see live is then what they
        will see when the log is read, and a payload that does not have its type's shape cannot get into the log."""
        correlation = cause.correlation
        if type(payload) is Correlated:
            payload, correlation = payload.payload, payload.correlation
            check_texts(actor, actor, actor, correlation)
        name, raw = type_of(payload), encode(payload)
        return Event(
            position, self.sequencer.time, f"{cause.position}.{actor}.{n}", "decision", actor, name,
            correlation, cause.position, decode(name, raw), raw,
        )

    def _append(self, decision: Event, out: Output) -> None:
        if decision.position != self.sequencer.position + 1:
            raise Inconsistent("the positions of a reaction do not follow")
        if is_outward(decision.data):
            self._outward.append(decision)
        elif (
            type(decision.data) is EffectRefused and refuses(decision)
            and not self.effects.is_open(decision.data.request)
        ):  # fmt: skip
            raise Inconsistent("an effect is refused that has ended")
        self.sequencer.pass_over(decision.position, decision.time)
        out.events.append(decision)
        self._book(decision, out)
        self._queue.append(decision)

    def _book(self, event: Event, out: Output | None) -> None:
        """Keep the engine's own books: open effects, halted actors, what is to be cancelled."""
        data = event.data
        cls = type(data)
        if cls is ActorHalted and event.actor == ENGINE:
            self.halted[data.name] = data.input
        elif cls is ActorResumed and event.kind == "fact":  # an operator's word; no actor resumes another
            self.halted.pop(data.name, None)
        starts, cancels = self.effects.book(event)
        if out is not None:
            out.starts.extend(starts)
            out.cancels.extend(cancels)

    # --- recovery ---------------------------------------------------------------------------------------------

    def fold(self, event: Event) -> None:
        """Take a recorded event; nothing is decided. Raises HistoryError when the history does not fit together."""
        sequencer, queue, position = self.sequencer, self._queue, event.position
        if event.kind == "fact":
            self._facts.append((event.id, position))
            if not event.type.startswith("log."):
                while queue:
                    self._deliver(queue.popleft())
                if self._end_matters:
                    self._end_reading()
                self._reading = None
                self._fact = position
                queue.append(event)
                if event.causation or type(event.data) is ActorResumed or requests_effect(type(event.data)):
                    self._book(event, None)
        else:
            while queue and queue[0].position <= event.causation:
                self._deliver(queue.popleft())
            self._read(event)
            cls = type(event.data)
            booked = self._booked.get(cls)
            if booked is None:
                booked = self._booked[cls] = cls is ActorHalted or self.effects.concerns(cls)
            if booked:
                self._book(event, None)
            queue.append(event)
        sequencer.position = position
        sequencer.time = event.time

    def _read(self, decision: Event) -> None:
        """Fold a decision in the reaction that it belongs to."""
        reading = self._reading
        if reading is None or reading.event.position != decision.causation:
            raise HistoryError(f"position {decision.position}: its cause {decision.causation} is not being reacted to")
        if self._witness is not None:
            self._witness.recorded(decision)
        about = decision.actor
        if about == ENGINE:
            reading.engine_decisions += 1
            about = about_whom(decision)
        slot = self._slots.get(about)
        if slot is None:
            return  # an actor that this code does not have any more
        reading.recorded = reading.recorded + 1 if slot == reading.slot else 1
        reading.slot = slot
        if decision.actor == about:
            try:
                self.states[about] = self.actors[slot].evolve(self.states[about], decision)
            except Exception as error:
                raise _unfoldable(about, decision.position, error) from error

    def _deliver(self, event: Event) -> None:
        """All recorded decisions before ``event``'s have been read: hand it to its subscribers."""
        if self._end_matters:
            self._end_reading()
        states, subscribers = self.states, self._subscribers.of(event)
        after: list[Any] = []
        reading = self._reading = RecordedReaction(event, subscribers, after)
        for name, evolve, _ in subscribers:
            try:
                state = states[name] = evolve(states[name], event)
            except Exception as error:  # as in _run
                state = states[name]
                reading.failures = {**(reading.failures or {}), len(after): error}
                self._end_matters = True
            after.append(state)
        if self._witness is not None:
            self._witness.delivered(reading)

    def _end_reading(self) -> None:
        """No further decision on what was being reacted to is recorded."""
        reading, self._reading = self._reading, None
        if reading is None:
            return
        if self._witness is not None:
            self._witness.ended(reading)
            return
        self._end_matters = False
        for actor, _, failure in reading.taken:
            if failure is not None and actor.name not in self.halted:
                raise _unfoldable(actor.name, reading.event.position, failure) from failure

    def complete(self, now: str) -> Output:
        """After the last recorded event: decide what a crash cut off, and go live. Recorded decisions stay.

        Only the last reaction can be cut short; of it, the actors before the one that decided last are complete.
        Raises HistoryError when an actor cannot take an event that it took when the event was new.
        """
        reading = self._reading
        self._whole, self._cause = False, "completing the last reaction failed"
        self.sequencer.time = max(self.sequencer.time, now)
        self.sequencer.remember_all(self._facts)
        self._facts.clear()
        self._end_matters = self._witness is not None
        out = Output([], [], [])
        if reading is not None:
            for actor, state, failure in reading.taken:
                if self._slots[actor.name] >= reading.slot:
                    self._complete_slot(actor, state, failure, reading, out)
                elif failure is not None and actor.name not in self.halted:
                    raise _unfoldable(actor.name, reading.event.position, failure) from failure
        self._reading = None
        self._run(out)
        self._outward.clear()  # what was requested before the crash used its permit then
        self._whole = True
        return out

    def _complete_slot(
        self, actor: AnyActor, state: Any, failure: Exception | None, reading: RecordedReaction, out: Output
    ) -> None:
        recorded = reading.recorded if self._slots[actor.name] == reading.slot else 0
        if self.halted.get(actor.name) == reading.event.position and failure is None:
            failure = ReactionTooLarge(actor.name)  # it was halted on this event; only the refusal may be missing
        engine_decisions = reading.engine_decisions - (recorded if failure is not None else 0)
        reaction = self.react(actor, state, reading.event, failure, engine_decisions)
        for decision in reaction.decisions[recorded:]:
            placed = msgspec.structs.replace(decision, position=self.sequencer.position + 1)
            if placed.actor == actor.name:
                self.states[actor.name] = actor.evolve(self.states[actor.name], placed)
            else:
                reading.engine_decisions += 1
            self._append(placed, out)

    # --- the cache ----------------------------------------------------------------------------------------------

    @property
    def quiescent(self) -> bool:
        """Whether every event has been reacted to; only then is the state a function of the log so far."""
        return self._whole and not self._queue and self._reading is None


def about_whom(decision: Event) -> str:
    """The actor whose reaction ``decision`` belongs to: its own, or, for the engine's, the one that is halted."""
    if decision.actor != ENGINE:
        return decision.actor
    return GATE if isinstance(decision.data, EffectRefused) else str(getattr(decision.data, "name", ""))


def _consequences(name: str, event: Event, failure: Exception | None) -> list[msgspec.Struct]:
    """The engine's decisions because actor ``name`` failed on ``event`` now (``failure``) or was halted before.
    Without the gate nothing outward starts (default deny)."""
    decisions: list[msgspec.Struct] = []
    if failure is not None:
        error, place = describe_failure(failure)
        decisions.append(ActorHalted(name=name, input=event.position, error=error, place=place))
    if is_request(event.data):
        decisions.append(RequestRefused(request=event.position, name=name, reason="halted"))
    if name == GATE and event.kind == "decision" and isinstance(event.data, OutwardRequest):
        decisions.append(refusal(event, ["the gate is halted"], "pmagent log tail --type actor.halted shows why"))
    return decisions


def _unfoldable(name: str, position: int, error: Exception) -> HistoryError:
    kind, place = describe_failure(error)
    return HistoryError(
        f"actor {name} cannot take the event at position {position} any more ({kind} in {place})",
        "start the version that wrote this log, or mend the actor",
    )
