"""The workers of a simulated world, beside the real actors: two that use permits and ask models, well or badly, and one
that fails at times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.control import EffectsPaused, EffectsResumed
from pmagent.contracts.effect import EffectCancelRequested
from pmagent.contracts.model import ModelAsked, ModelLimits, ModelMessage, ModelPrice
from pmagent.contracts.oa import OaPermitGranted, OaPermitReleaseRequested, OaPermitRequested
from pmagent.contracts.payload import Effect, OutwardRequest, Payload, Scope, effect_of, event_type
from pmagent.events.event import Event, time_after

HANDS: Final = ("hand", "mate")
"""The actors that use permits."""

ACTIONS: Final = ("feature_work", "feature_work", "remediation", "diagnostic", "unheard_of")
"""The actions that permits are requested for."""

OTHER_ACTION: Final = ("diagnostic", "remediation")
"""Actions that a permit is misused for: one that every mode allows, or one that a DEGRADED one does."""

replace = msgspec.structs.replace


@event_type("sim.work_asked")
class WorkAsked(Payload, frozen=True, kw_only=True):
    """Work for the actor ``to``. ``how``: permit, forge (use a permit that was not granted), tidy, cancel, timer, ask
    (a model several questions at once, within ``limits`` at ``price``), pause or resume (say in its own name what only
    the gate decides).

    A permit is asked for ``seconds`` and used as ``use`` says: "" (as it was granted), again (twice), late (``after``
    so many seconds, when it may have expired or been revoked), action or subject (for another one), holder (it is
    asked for, and held by, another).
    """

    n: int
    how: str
    to: str
    action: str = "feature_work"
    use: str = ""
    seconds: float = 60.0
    after: float = 0.0
    text: str = ""
    limits: ModelLimits = ModelLimits()
    price: ModelPrice | None = None


@event_type("sim.send_requested", effect=Effect(repeatable=False, limit_s=5.0, concurrency=3, outcomes=("sim.done",)))
class SendRequested(OutwardRequest, frozen=True, kw_only=True):
    """Outward, and must never happen twice."""

    n: int
    action: str

    def scope(self) -> Scope:
        """See OutwardRequest."""
        return Scope(self.action, f"job-{self.n % 3}")


@event_type("sim.fetch_requested", effect=Effect(repeatable=True, limit_s=5.0, concurrency=2, outcomes=("sim.done",)))
class FetchRequested(OutwardRequest, frozen=True, kw_only=True):
    """Outward, and may be repeated."""

    n: int
    action: str

    def scope(self) -> Scope:
        """See OutwardRequest."""
        return Scope(self.action, f"job-{self.n % 3}")


@event_type("sim.tidy_requested", effect=Effect(repeatable=True, limit_s=5.0, concurrency=2, outcomes=("sim.done",)))
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


class HandState(msgspec.Struct, frozen=True):
    """The jobs that wait for a permit, by the position of the request for it; those whose permit is to be used later,
    by the permit; the latest effects requested."""

    jobs: dict[int, WorkAsked] = {}
    later: dict[int, WorkAsked] = {}
    asked: WorkAsked | None = None
    latest: list[int] = []


class Hand:
    """Asks for permits and uses them; now and then one that it does not have, or not for this."""

    hears: frozenset[type[msgspec.Struct]] = frozenset((WorkAsked, OaPermitGranted, Done, TimerFired))

    def __init__(self, name: str) -> None:
        self.name = name

    def initial(self) -> HandState:
        """Nothing to do."""
        return HandState()

    def evolve(self, state: HandState, event: Event) -> HandState:
        """Note jobs and requests."""
        data = event.data
        if isinstance(data, WorkAsked):
            return replace(state, asked=data)
        if isinstance(data, OaPermitRequested) and state.asked is not None:
            return replace(state, jobs={**_last(state.jobs), event.position: state.asked})
        if isinstance(data, OaPermitGranted) and data.request in state.jobs:
            return replace(state, later={**_last(state.later), event.position: state.jobs[data.request]})
        if event.actor == self.name and effect_of(data) is not None:
            return replace(state, latest=[*state.latest, event.position][-8:])
        return state

    def decide(self, state: HandState, event: Event) -> Iterable[Payload]:
        """See the class."""
        data = event.data
        if isinstance(data, WorkAsked) and data.to == self.name:
            return self._on_work(state, event, data)
        if isinstance(data, OaPermitGranted) and data.request in state.jobs:
            return self._on_permit(state.jobs[data.request], event)
        if isinstance(data, TimerFired) and data.name.startswith(f"{self.name}:"):
            permit = int(data.name.partition(":")[2])
            if permit in state.later:
                return self._use(state.later[permit], permit)
        return ()

    def _on_work(self, state: HandState, event: Event, asked: WorkAsked) -> Iterable[Payload]:
        match asked.how:
            case "permit":
                holder = self.name if asked.use != "holder" else HANDS[self.name == HANDS[0]]
                yield OaPermitRequested(
                    action=asked.action, subject=f"job-{asked.n % 3}", holder=holder, seconds=asked.seconds,
                    uses=1 + (asked.n % 4 == 0),
                )
            case "forge":
                yield SendRequested(n=asked.n, action=asked.action, permit=max(1, event.position - asked.n))
            case "tidy":
                for _ in range(2 + asked.n % 4):  # so many that a crash can cut the reaction short
                    yield TidyRequested(n=asked.n)
            case "timer":
                yield TimerRequested(at=time_after(event.time, asked.seconds / 10), name=f"t{asked.n}")
            case "ask":
                messages = [ModelMessage(role="user", content=asked.text)]
                for number in range(2 + asked.n % 4):
                    yield ModelAsked(
                        engine="langchain", model=f"sim:{number % 2}", action=asked.action, messages=messages,
                        limits=asked.limits, price=asked.price,
                    )
            case "pause":
                yield EffectsPaused(
                    request=event.position, since=event.position, operator_id="eve", channel="cli", reason=""
                )
            case "resume":
                yield EffectsResumed(request=event.position, since=1, held=0, operator_id="eve", channel="cli")
            case "cancel" if state.latest:
                yield EffectCancelRequested(request=state.latest[-1])

    def _on_permit(self, job: WorkAsked, grant: Event) -> Iterable[Payload]:
        if job.use == "late":
            yield TimerRequested(at=time_after(grant.time, job.after), name=f"{self.name}:{grant.position}")
            if job.n % 2:
                yield OaPermitReleaseRequested(permit=grant.position, holder=self.name)
        else:
            yield from self._use(job, grant.position)

    def _use(self, job: WorkAsked, permit: int) -> Iterable[Payload]:
        kind = SendRequested if job.n % 2 else FetchRequested
        action = job.action if job.use != "action" else OTHER_ACTION[job.action == OTHER_ACTION[0]]
        n = job.n + (job.use == "subject")
        yield kind(n=n, action=action, permit=permit)
        if job.use == "again":
            yield kind(n=n, action=action, permit=permit)


def _last(jobs: dict[int, WorkAsked]) -> dict[int, WorkAsked]:
    """Without the oldest, so that a new one finds room."""
    return dict(list(jobs.items())[-31:])


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
