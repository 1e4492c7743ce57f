"""Who works in a simulated world, beside the real actors: one that uses permits, and one that fails at times."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from contracts.clock import TimerFired, TimerRequested
from contracts.effect import EffectCancelRequested
from contracts.oa import OaPermitGranted, OaPermitRequested
from contracts.payload import Effect, OutwardRequest, Payload, Scope, effect_of, event_type
from events.event import Event, time_after


@event_type("sim.work_asked")
class WorkAsked(Payload, frozen=True, kw_only=True):
    """Work for the worker. ``how``: permit, forge (use a permit that was not granted), tidy, cancel, timer."""

    n: int
    how: str
    action: str = "feature_work"
    again: bool = False
    seconds: float = 60.0
    text: str = ""


@event_type("sim.send_requested", effect=Effect(repeatable=False, limit_s=5.0, concurrency=3))
class SendRequested(OutwardRequest, frozen=True, kw_only=True):
    """Outward, and must never happen twice."""

    n: int
    action: str

    def scope(self) -> Scope:
        """See OutwardRequest."""
        return Scope(self.action, f"job-{self.n % 3}")


@event_type("sim.fetch_requested", effect=Effect(repeatable=True, limit_s=5.0, concurrency=2))
class FetchRequested(OutwardRequest, frozen=True, kw_only=True):
    """Outward, and may be repeated."""

    n: int
    action: str

    def scope(self) -> Scope:
        """See OutwardRequest."""
        return Scope(self.action, f"job-{self.n % 3}")


@event_type("sim.tidy_requested", effect=Effect(repeatable=True, limit_s=5.0, concurrency=2))
class TidyRequested(Payload, frozen=True, kw_only=True):
    """Inward."""

    n: int


@event_type("sim.done")
class Done(Payload, frozen=True, kw_only=True):
    """The outcome of any of these."""

    n: int
    text: str = ""


@event_type("sim.question_asked", request=True)
class QuestionAsked(Payload, frozen=True, kw_only=True):
    """A question for the fragile actor. ``fatal``: "", decide or evolve, where it raises."""

    n: int
    fatal: str = ""


@event_type("sim.answered")
class Answered(Payload, frozen=True, kw_only=True):
    """Its answer: how many it has given."""

    request: int
    count: int


class WorkerState(msgspec.Struct, frozen=True):
    """The jobs that wait for a permit, by the position of the request for it; the latest effects requested."""

    jobs: dict[int, WorkAsked] = {}
    asked: WorkAsked | None = None
    latest: list[int] = []


class Worker:
    """Asks for permits and uses them; now and then one that it does not have."""

    name = "worker"
    hears: frozenset[type[msgspec.Struct]] = frozenset((WorkAsked, OaPermitGranted, Done, TimerFired))

    def initial(self) -> WorkerState:
        """Nothing to do."""
        return WorkerState()

    def evolve(self, state: WorkerState, event: Event) -> WorkerState:
        """Note jobs and requests."""
        data = event.data
        if isinstance(data, WorkAsked):
            return msgspec.structs.replace(state, asked=data)
        if isinstance(data, OaPermitRequested) and state.asked is not None:
            kept = dict(list(state.jobs.items())[-31:])
            return msgspec.structs.replace(state, jobs={**kept, event.position: state.asked})
        if event.actor == self.name and effect_of(data) is not None:
            return msgspec.structs.replace(state, latest=[*state.latest, event.position][-8:])
        return state

    def decide(self, state: WorkerState, event: Event) -> Iterable[Payload]:
        """See the class."""
        data = event.data
        if isinstance(data, WorkAsked):
            return self._on_work(state, event, data)
        if isinstance(data, OaPermitGranted) and data.request in state.jobs:
            return self._on_permit(state.jobs[data.request], event.position)
        return ()

    def _on_work(self, state: WorkerState, event: Event, asked: WorkAsked) -> Iterable[Payload]:
        match asked.how:
            case "permit":
                yield OaPermitRequested(
                    action=asked.action, subject=f"job-{asked.n % 3}", holder=self.name, seconds=asked.seconds,
                )
            case "forge":
                yield SendRequested(n=asked.n, action=asked.action, permit=max(1, event.position - asked.n))
            case "tidy":
                yield TidyRequested(n=asked.n)
            case "timer":
                yield TimerRequested(at=time_after(event.time, asked.seconds / 10), name=f"t{asked.n}")
            case "cancel" if state.latest:
                yield EffectCancelRequested(request=state.latest[-1])

    def _on_permit(self, job: WorkAsked, permit: int) -> Iterable[Payload]:
        kind = SendRequested if job.n % 2 else FetchRequested
        yield kind(n=job.n, action=job.action, permit=permit)
        if job.again:
            yield kind(n=job.n, action=job.action, permit=permit)


class FragileState(msgspec.Struct, frozen=True):
    """How many answers were given."""

    count: int = 0


class Fragile:
    """Answers questions, and raises on some: its halting must concern nobody else."""

    name = "fragile"
    hears: frozenset[type[msgspec.Struct]] = frozenset((QuestionAsked,))

    def initial(self) -> FragileState:
        """None given."""
        return FragileState()

    def evolve(self, state: FragileState, event: Event) -> FragileState:
        """Count."""
        if isinstance(event.data, QuestionAsked) and event.data.fatal == "evolve":
            raise ValueError("a question that cannot be taken")
        return FragileState(state.count + isinstance(event.data, Answered))

    def decide(self, state: FragileState, event: Event) -> Iterable[Payload]:
        """Answer."""
        yield Answered(request=event.position, count=state.count + 1)
        if event.data.fatal == "decide":
            raise LookupError("a question without an answer")
