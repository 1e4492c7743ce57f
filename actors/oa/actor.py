"""The OA as an actor; pure.

It judges each observation with the same pure function as the kernel watcher, instead of waiting for the
watcher's ``kernel.mode_decided``: that event is written only when something changed, so it cannot answer a
request; and a permit is then never judged by an older observation than the newest in the log. Escalations to
people, and the permits that are taken back, follow from ``kernel.mode_decided``, so that the log shows
mode change -> effect.

A snapshot or boot waits for the reading that the watcher asks for because of it (``causation`` ties the two).
However that reading ends, the request is answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from pmagent.actors.kernel.mode import Expected, judged
from pmagent.actors.oa import permits, sessions
from pmagent.actors.oa.policy import AUTHORITY
from pmagent.actors.oa.state import WAITING_MAX, OaActorState, Session, Standing, Waiting, WaitingPermit
from pmagent.contracts.control import LogAdopted
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.effect import (
    EFFECT_ENDS,
    ENDED,
    ActorHalted,
    ActorResumed,
    EffectEnd,
    RequestRefused,
)
from pmagent.contracts.kernel import WATCHER, KernelModeDecided, KernelObserved, KernelReadRequested, Reason
from pmagent.contracts.oa import (
    GRANTOR,
    OaBootRefused,
    OaBootRequested,
    OaPermitGranted,
    OaPermitRefused,
    OaPermitReleaseRequested,
    OaPermitRequested,
    OaPermitRevoked,
    OaSessionBooted,
    OaSessionEnded,
    OaSnapshotRequested,
    OaSnapshotTaken,
)
from pmagent.contracts.orchestra_events import RunEnded, RunRefused
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event


class Oa:
    """Snapshots, sessions, permits and escalations."""

    name = GRANTOR
    authority = AUTHORITY
    hears: frozenset[type[msgspec.Struct]] = frozenset((
        DaemonStarted, KernelReadRequested, KernelObserved, KernelModeDecided, OaSnapshotRequested, OaBootRequested,
        OaPermitRequested, OaPermitReleaseRequested, *EFFECT_ENDS, RequestRefused, ActorHalted, ActorResumed,
        RunRefused, RunEnded, LogAdopted,
    ))

    def initial(self) -> OaActorState:
        """Nothing observed, nobody waiting."""
        return OaActorState()

    def evolve(self, state: OaActorState, event: Event) -> OaActorState:
        """Fold an input or a decision of its own."""
        data = event.data  # the most frequent first; to ask a struct's type for its subclasses takes longer
        if type(data) is OaPermitRequested:
            return _permit_asked(state, event, data)
        if type(data) is OaPermitRefused:
            return _answered(state, data.request)
        match data:
            case DaemonStarted():
                # Surfaces may have changed while no engine ran: what was observed before proves nothing now.
                return replace(state, standing=None, expected=state.expected.after(event))
            case KernelReadRequested():
                return _read_under_way(state, event)
            case KernelObserved() as observed:
                expected = state.expected.after(event)
                standing = _standing(event, expected)
                return replace(_read_over(state, observed.request), standing=standing, expected=expected)
            case KernelModeDecided(mode=mode):
                return replace(state, sessions=sessions.with_mode(state.sessions, mode))
            case OaSnapshotRequested():
                return replace(state, waiting=[*state.waiting, Waiting(event.position, boot=False)])
            case OaBootRequested(session_id=session_id, workspace=workspace):
                waiting = Waiting(event.position, boot=True, session_id=session_id, workspace=workspace)
                return replace(state, waiting=[*state.waiting, waiting])
            case ActorHalted(name=name) if name == WATCHER:
                return replace(state, unwatched=True)
            case ActorResumed(name=name) if name == WATCHER:
                return replace(state, unwatched=False)
        if isinstance(data, EffectEnd):
            return _read_over(state, data.request)
        return _own(state, event)

    def decide(self, state: OaActorState, event: Event) -> Iterable[Payload | Correlated]:
        """The decisions on an input."""
        match event.data:
            case KernelObserved(request=request):
                return list(_on_observed(state, event, request))
            case KernelModeDecided() as decided:
                escalated = sessions.escalations(state, decided) if decided.mode != decided.previous else ()
                return [*escalated, *permits.revocations(state, event, decided)]
            case ActorHalted(name=name) if name == WATCHER:
                return list(permits.unwatched(state, event))
            case LogAdopted() if event.kind == "fact":
                return list(permits.adopted(state, event))
            case OaSnapshotRequested() | OaBootRequested() if len(state.waiting) > WAITING_MAX:
                return [_unread(state.waiting[-1], _TOO_MANY)]
            case RunEnded(run_id=run_id):
                return list(permits.ended(state, event, run_id))
            case RunRefused(run_id=run_id, code=code) if code != "known":  # else that run goes on
                return list(permits.ended(state, event, run_id))
            case OaPermitRequested() as asked if not _waits(state, event.position):
                return [permits.answer(state, event.time, event.position, asked)]
            case OaPermitReleaseRequested() as given_back:
                return list(permits.released(state, event, given_back))
        if isinstance(event.data, EffectEnd):
            return list(_on_read_end(state, event, event.data))
        return []


def _permit_asked(state: OaActorState, event: Event, asked: OaPermitRequested) -> OaActorState:
    if state.standing is not None or not state.reads:
        return state
    waiting = WaitingPermit(event.position, asked, event.correlation)
    return replace(state, waiting_permits=[*state.waiting_permits, waiting])


def _own(state: OaActorState, event: Event) -> OaActorState:
    """Fold an answer: the OA's own, or the engine's refusal in its stead."""
    match event.data:
        case OaPermitGranted(request=request) as granted:
            return replace(_answered(state, request), permits=permits.granted(state.permits, event, granted))
        case OaSnapshotTaken(request=request) | OaBootRefused(request=request) | RequestRefused(request=request):
            return _answered(state, request)
        case OaSessionBooted(request=request) as booted:
            opened = sessions.opened(state.sessions, event, booted)
            return replace(_answered(state, request), sessions=opened)
        case OaSessionEnded(session_id=session_id):
            return replace(state, sessions=sessions.closed(state.sessions, session_id))
        case OaPermitRevoked(permit=permit) | RunEnded(permit=int() as permit):
            return replace(state, permits=permits.revoked(state.permits, permit))
    return state


def _answered(state: OaActorState, request: int) -> OaActorState:
    if state.waiting or state.waiting_permits:
        return replace(
            state, waiting=[one for one in state.waiting if one.request != request],
            waiting_permits=[one for one in state.waiting_permits if one.request != request],
        )
    return state


def _read_under_way(state: OaActorState, event: Event) -> OaActorState:
    waiting = [replace(one, read=event.position) if one.request == event.causation else one for one in state.waiting]
    return replace(state, reads=[*state.reads, event.position], waiting=waiting)


def _read_over(state: OaActorState, request: int) -> OaActorState:
    if request not in state.reads:
        return state
    return replace(state, reads=[read for read in state.reads if read != request])


def _standing(event: Event, expected: Expected) -> Standing:
    now = judged(event, expected)
    return Standing(now.mode, now.reasons, now.phase, now.branch, event.position, now.complete)


def _waits(state: OaActorState, request: int) -> bool:
    waiting = state.waiting_permits
    return bool(waiting) and waiting[-1].request == request and len(waiting) <= WAITING_MAX


def _on_observed(state: OaActorState, event: Event, read: int) -> Iterator[Payload | Correlated]:
    now = state.standing
    if now is None:
        return
    for waiting in state.waiting:
        if waiting.read != read or read == 0:
            continue
        if waiting.boot:
            answers = list(sessions.booted(state, waiting.request, waiting.session_id, waiting.workspace, now))
            yield from answers
            state = _foreseen(state, answers)
        else:
            yield OaSnapshotTaken(
                request=waiting.request, observed=now.observed, success=now.complete, mode=now.mode,
                reasons=now.reasons,
            )
    for one in state.waiting_permits:
        yield Correlated(permits.answer(state, event.time, one.request, one.asked), one.correlation)


def _foreseen(state: OaActorState, answers: list[Payload | Correlated]) -> OaActorState:
    """The sessions as they will be, so that a second boot on the same reading counts the first."""
    open_now = state.sessions
    for given in answers:
        answer = given.payload if isinstance(given, Correlated) else given
        if isinstance(answer, OaSessionEnded):
            open_now = sessions.closed(open_now, answer.session_id)
        elif isinstance(answer, OaSessionBooted):
            open_now = [*open_now, Session(answer.session_id, "", answer.mode, answer.mode, "")]
    return replace(state, sessions=open_now)


def _on_read_end(state: OaActorState, event: Event, end: EffectEnd) -> Iterator[Payload | Correlated]:
    reason = Reason(
        code="read_failed", mode="BLOCKED", text=f"the surfaces could not be read (reading {ENDED[type(end)]})",
        mend="ask again; if it happens again, see: pmagent log why " + str(event.position),
    )
    for waiting in state.waiting:
        if waiting.read == end.request:
            yield _unread(waiting, reason)
    if state.standing is None and not state.reads:
        for one in state.waiting_permits:
            yield Correlated(permits.answer(state, event.time, one.request, one.asked), one.correlation)


_TOO_MANY = Reason(
    code="too_many_requests", mode="BLOCKED", text="too many requests wait for a reading",
    mend="ask again when they have been answered",
)


def _unread(waiting: Waiting, reason: Reason) -> Payload:
    """The truthful answer without a reading: nothing was taken, nothing was booted."""
    if waiting.boot:
        return sessions.refused(waiting.request, waiting.session_id, [reason])
    return OaSnapshotTaken(request=waiting.request, observed=0, success=False, mode="BLOCKED", reasons=[reason])
