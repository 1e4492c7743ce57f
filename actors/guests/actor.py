"""The guests' actor: judges each call, once, and keeps approvals; pure (docs/guests.md).

A verdict is computed from the call as it was recorded, the policy and the kernel's mode as they stood, and what its
session has seen. In mode enforce, an approval turns an ``ask`` into an ``allow``, and nothing turns a ``deny``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from pmagent.actors.guests.answers import GIVEN_SECONDS, edited, refused
from pmagent.actors.guests.definitions import changed, read
from pmagent.actors.guests.judge import judge, only_reads
from pmagent.actors.guests.state import (
    APPROVALS_MAX,
    CALLS_MAX,
    IDLE_SECONDS,
    SESSIONS_MAX,
    GuestsState,
    OpenCall,
    Session,
    fewer,
    joined,
    policy_with,
    replace,
    spent,
    with_session,
    without,
)
from pmagent.actors.guests.state import Approval as Kept
from pmagent.contracts.clock import TimerFired, TimerRequested
from pmagent.contracts.control import EffectsPaused, EffectsResumed
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.guest_calls import Answer, Situation, Verdict
from pmagent.contracts.guests import (
    GUESTS,
    GuestAnswerRequested,
    GuestApprovalAsked,
    GuestApprovalExpired,
    GuestApprovalGiven,
    GuestApprovalRejected,
    GuestApprovalUsed,
    GuestCallAsked,
    GuestCallClosed,
    GuestCallDecided,
    GuestCallEnded,
    GuestDefinitionsRead,
    GuestEndUnmatched,
    GuestFact,
    GuestPolicyEditRequested,
    GuestPolicyRead,
    GuestSessionClosed,
    GuestSessionEnded,
    GuestSessionStarted,
    GuestWaitEnded,
)
from pmagent.contracts.kernel import KernelModeDecided
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event, time_after

ASKED_SECONDS: Final = 3600.0
"""So long operators may take to approve."""
_TIMER: Final = "guests.approval:"


Decided = Iterable[Payload | Correlated]


class _Judged(NamedTuple):
    """The result for a call: the judge's verdict, the answer, the approval that it uses, and why it is another one."""

    verdict: Verdict
    answer: Answer
    approval: int = 0
    why: str = ""


class Guests:
    """See the module."""

    name = GUESTS
    hears: frozenset[type[msgspec.Struct]] = frozenset((
        GuestPolicyRead, GuestSessionStarted, GuestSessionEnded, GuestCallAsked, GuestCallEnded, GuestWaitEnded,
        GuestAnswerRequested, GuestPolicyEditRequested, KernelModeDecided, EffectsPaused, EffectsResumed,
        DaemonStarted, TimerFired, GuestDefinitionsRead,
    ))  # fmt: skip

    def initial(self) -> GuestsState:
        """No session, and no policy."""
        return GuestsState()

    def evolve(self, state: GuestsState, event: Event) -> GuestsState:
        """Fold what stands: policy, mode, sessions, calls, approvals."""
        data = event.data
        if isinstance(data, GuestFact):
            return _told(state, event, data) if event.kind == "fact" and data.source != "import" else state
        if event.actor == self.name:
            return _own(state, event)
        match data:
            case GuestPolicyRead(policy=policy) if event.kind == "fact":
                named = {
                    name: replace(one, policy=policy_with(policy, one.rules)) if one.rules else one
                    for name, one in state.sessions.items()
                }  # fmt: skip
                return replace(state, policy=policy, sessions=named)
            case GuestAnswerRequested(rule_uses=uses) if event.kind == "fact":
                return replace(state, uses=uses)
            case KernelModeDecided(mode=mode) if event.kind == "decision":
                return replace(state, mode=mode)
            case EffectsPaused() | EffectsResumed() if event.kind == "decision" and event.actor == "gate":
                return replace(state, paused=isinstance(data, EffectsPaused))
        return state

    def decide(self, state: GuestsState, event: Event) -> Decided:
        """The decisions that follow from a fact."""
        data = event.data
        if event.kind != "fact" or (isinstance(data, GuestFact) and data.source == "import"):
            return
        if isinstance(data, GuestCallAsked | GuestSessionStarted):
            yield from _idle(state, event)
        match data:
            case GuestCallAsked():
                yield from _on_call(state, event, data)
            case GuestCallEnded():
                yield from _on_end(state, event, data)
            case GuestSessionEnded() if data.session in state.sessions:
                yield from _closed(data.session, state.sessions[data.session], data)
            case GuestWaitEnded():
                why = "nobody answered in time" if data.why == "late" else "its hook has gone"
                why = "it was deferred until its session is resumed" if data.deferred else why
                yield from _waited_in_vain(state, why, data.call_asked)
            case GuestAnswerRequested():
                yield from _on_answer(state, event, data)
            case GuestPolicyEditRequested():
                yield edited(event, data)
            case GuestDefinitionsRead(harness=harness):
                yield from changed(data, state.definitions[harness])
            case DaemonStarted():  # whoever waited was told by its hook that nobody is there
                yield from _waited_in_vain(state, "the daemon ended while it waited")
            case TimerFired(name=name) if name.startswith(_TIMER):
                yield from _expired(state, int(name.removeprefix(_TIMER)), event.time)


# --- what is known --------------------------------------------------------------------------------------------------


def _told(state: GuestsState, event: Event, data: GuestFact) -> GuestsState:
    """With what a hook says. A call is counted with its verdict."""
    match data:
        case GuestCallAsked():
            return replace(state, asked=data, position=event.position)
        case GuestDefinitionsRead(harness=harness):
            found = read(data.definitions, state.definitions.get(harness))
            return replace(state, definitions={**state.definitions, harness: found})
        case GuestWaitEnded(deferred=True, call_asked=position) if data.session in state.sessions:
            call = state.sessions[data.session].calls.get(position)
            kept = state.approvals.get(call.waits) if call is not None else None
            if call is not None and kept is not None:
                return replace(state, approvals={**state.approvals, call.waits: replace(kept, deferred=True)})
        case GuestSessionStarted():
            session = state.sessions.get(data.session) or Session(last=event.time)
            return with_session(state, data.session, replace(session, last=event.time, canary=True))
        case GuestCallEnded() if data.session in state.sessions:
            return with_session(state, data.session, replace(state.sessions[data.session], last=event.time))
    return state


def _own(state: GuestsState, event: Event) -> GuestsState:
    """With a decision of its own."""
    match event.data:
        case GuestCallDecided() as decided if state.asked is not None and decided.request == state.position:
            return _counted(state, event, state.asked, decided)
        case GuestApprovalAsked() as asked:
            kept = Kept(
                session=event.correlation, agent=asked.agent, tool=asked.tool, digest=asked.digest,
                needed=asked.needed, expires=asked.expires,
            )  # fmt: skip
            return replace(state, approvals={**state.approvals, asked.approval: kept})
        case GuestApprovalGiven() as given if given.approval in state.approvals:
            kept = state.approvals[given.approval]
            kept = replace(kept, operators=[*kept.operators, given.operator_id], expires=given.expires)
            state = replace(state, approvals={**state.approvals, given.approval: kept})
            session = state.sessions.get(given.session)
            if given.rule is None or session is None:
                return state
            rules = [*session.rules, given.rule]
            left = {**session.left, given.rule.id: state.uses} if state.uses else session.left
            ruled = replace(session, rules=rules, policy=policy_with(state.policy, rules), left=left)
            return replace(state, sessions={**state.sessions, given.session: ruled})
        case GuestApprovalUsed(approval=number, call_asked=position):
            return _used(state, number, position)
        case GuestApprovalRejected(approval=number) | GuestApprovalExpired(approval=number):
            return replace(state, approvals=without(state.approvals, number))
        case GuestCallClosed(call_asked=position, end=end):
            return _without_call(state, position, end)
        case GuestEndUnmatched():
            session = state.sessions.get(event.correlation)
            if session is not None:
                counted = replace(session, unmatched=session.unmatched + 1)
                return replace(state, sessions={**state.sessions, event.correlation: counted})
        case GuestSessionClosed(session=name):
            return with_session(state, name, None)
    return state


def _counted(state: GuestsState, event: Event, asked: GuestCallAsked, decided: GuestCallDecided) -> GuestsState:
    """With the call that has been judged now; one that is refused has ended."""
    session = state.sessions.get(asked.session) or Session(last=event.time)
    observed = asked.mode == "observe"
    passes = observed or decided.answer == "allow"
    waits = 0
    if not passes and decided.answer == "ask":
        waits = state.usable(asked, event.time, given=False) or decided.request
    calls, ids = session.calls, session.ids
    if passes or waits:
        call = OpenCall(
            position=decided.request, call=asked.call, agent=asked.facts.agent, tool=asked.facts.tool, waits=waits,
            gains=[] if passes else decided.verdict.gains,
        )  # fmt: skip
        calls = {**calls, decided.request: call}
        ids = {**ids, call.call: ids.get(call.call, 0) + 1} if call.call else ids
    session = replace(
        session, last=event.time, observed=session.observed or observed, calls=calls, ids=ids, asked=session.asked + 1,
        allowed=session.allowed + (decided.answer == "allow"), refused=session.refused + (decided.answer == "deny"),
        labels=joined(session.labels, decided.verdict.gains) if passes and decided.verdict.gains else session.labels,
    )  # fmt: skip
    if decided.verdict.answer == decided.answer == "allow" and not observed:
        session = spent(session, decided.verdict.rules, state.policy)
    return with_session(state, asked.session, session, asked=None)


def _used(state: GuestsState, number: int, position: int) -> GuestsState:
    """Without an approval; the call that waited for it is let through."""
    approval = state.approvals.get(number)
    if approval is None:
        return state
    state = replace(state, approvals=without(state.approvals, number))
    session = state.sessions.get(approval.session)
    call = session.calls.get(position) if session is not None else None
    if session is None or call is None or not call.waits:
        return state
    passing = replace(session, allowed=session.allowed + 1, labels=joined(session.labels, call.gains),
                      calls={**session.calls, position: replace(call, waits=0)})  # fmt: skip
    return replace(state, sessions={**state.sessions, approval.session: passing})


def _without_call(state: GuestsState, position: int, end: str) -> GuestsState:
    for name, session in state.sessions.items():
        if position in session.calls:
            calls = dict(session.calls)
            closed = calls.pop(position)
            left = replace(session, calls=calls, ids=fewer(session.ids, closed.call),
                           unknown=session.unknown + (end == "unknown"),
                           refused=session.refused + (end in ("refused", "expired")))  # fmt: skip
            return replace(state, sessions={**state.sessions, name: left})
    return state


# --- calls ----------------------------------------------------------------------------------------------------------


def _on_call(state: GuestsState, event: Event, asked: GuestCallAsked) -> Decided:
    session = state.sessions.get(asked.session)
    calls = session.calls if session is not None else {}
    if session is not None and asked.call in session.ids:
        for call in calls.values():
            if call.call == asked.call and call.agent == asked.facts.agent:
                yield _end(call, "it was asked again, and its end was not seen")
    if len(calls) >= CALLS_MAX:
        yield _end(next(iter(calls.values())), "so many calls of its session are open that it is given up")
    found = _judged(state, event, asked, session)
    yield GuestCallDecided(
        request=event.position, answer=found.answer, verdict=found.verdict, mode=state.mode,
        labels=session.labels if session is not None else [], approval=found.approval, why=found.why,
    )  # fmt: skip
    if asked.mode == "observe":
        return
    if found.approval:
        yield GuestApprovalUsed(approval=found.approval, call_asked=event.position)
    elif found.answer == "ask" and not state.usable(asked, event.time, given=False):
        expires = time_after(event.time, ASKED_SECONDS)
        yield GuestApprovalAsked(
            approval=event.position, agent=asked.facts.agent, tool=asked.facts.tool, digest=asked.digest,
            needed=max(1, found.verdict.approvals), expires=expires,
        )  # fmt: skip
        yield TimerRequested(at=expires, name=f"{_TIMER}{event.position}")


def _judged(state: GuestsState, event: Event, asked: GuestCallAsked, session: Session | None) -> _Judged:
    labels = session.labels if session is not None else []
    policy = (session.policy if session is not None else None) or state.policy
    verdict = judge(asked.facts, policy, Situation(mode=state.mode, labels=labels, time=event.time))
    if asked.mode == "observe" or verdict.answer == "deny":
        return _Judged(verdict, verdict.answer)
    if asked.needs_start and not (session is not None and session.canary):
        why = "the start of its session was not heard: end it and begin anew, or resume it, so that its hooks say so"
        return _Judged(verdict, "deny", why=why)
    if asked.source == "spool":
        return _Judged(verdict, "deny", why="no daemon answered, so its hook refused it")
    if state.paused and not only_reads(asked.facts):
        return _Judged(verdict, "deny", why="effects are paused; an operator ends that: pmagent resume")
    if verdict.answer == "allow":
        return _Judged(verdict, "allow")
    number = state.usable(asked, event.time, given=True)
    if number and len(state.approvals[number].operators) >= verdict.approvals:
        return _Judged(verdict, "allow", approval=number)
    own = sum(one.session == asked.session for one in state.approvals.values())
    if own >= APPROVALS_MAX or len(state.approvals) >= 20 * APPROVALS_MAX:
        return _Judged(verdict, "deny", why=f"{own} calls of this session wait for operators already")
    return _Judged(verdict, "ask")


def _on_end(state: GuestsState, event: Event, ended: GuestCallEnded) -> Decided:
    """The call that has ended: by its id; of a harness that gives none, the oldest of that tool."""
    session = state.sessions.get(ended.session)
    for call in session.calls.values() if session is not None else ():
        same = call.call == ended.call if ended.call else call.tool == ended.tool
        if same and call.agent == ended.agent and not call.waits:
            yield GuestCallClosed(call_asked=call.position, end="ended")
            return
    yield GuestEndUnmatched(ended=event.position, call=ended.call, tool=ended.tool)


def _waited_in_vain(state: GuestsState, why: str, position: int = 0) -> Iterator[Correlated]:
    """The ends of calls that wait: of the one at this position, or of all."""
    for name, session in state.sessions.items():
        for call in session.calls.values():
            if call.waits and position in (0, call.position):
                yield Correlated(GuestCallClosed(call_asked=call.position, end="expired", why=why), name)


def _end(call: OpenCall, why: str) -> GuestCallClosed:
    """The end of a call of which no more will be seen."""
    return GuestCallClosed(call_asked=call.position, end="expired" if call.waits else "unknown", why=why)


# --- approvals ------------------------------------------------------------------------------------------------------


def _on_answer(state: GuestsState, event: Event, wish: GuestAnswerRequested) -> Decided:
    if (refusal := refused(state, event, wish)) is not None:
        yield refusal
        return
    approval, number = state.approvals[wish.approval], wish.approval
    waiting = state.waiting(number)
    session, who = approval.session, wish.operator_id
    if wish.decision == "reject":
        yield GuestApprovalRejected(
            request=event.position, approval=number, session=session, operator_id=who, channel=wish.channel,
            note=wish.note,
        )  # fmt: skip
        for position in waiting:
            why = f"{who} rejected it" + (f": {wish.note}" if wish.note else "")
            yield Correlated(GuestCallClosed(call_asked=position, end="refused", why=why), session)
        return
    given = len(approval.operators) + 1
    complete = given >= approval.needed
    expires = time_after(event.time, GIVEN_SECONDS) if complete else approval.expires
    yield GuestApprovalGiven(
        request=event.position, approval=number, session=session, operator_id=who, channel=wish.channel, given=given,
        needed=approval.needed, expires=expires, note=wish.note, rule=wish.rule,
    )  # fmt: skip
    if not complete:
        return
    if waiting and not state.paused:
        yield Correlated(GuestApprovalUsed(approval=number, call_asked=waiting[0]), session)
    else:
        yield TimerRequested(at=expires, name=f"{_TIMER}{number}")


def _expired(state: GuestsState, number: int, now: str) -> Iterator[Correlated]:
    """The end of an approval whose time is over."""
    approval, why = state.approvals.get(number), "nobody answered before it expired"
    if approval is None or approval.expires > now:
        return
    for position in state.waiting(number):
        yield Correlated(GuestCallClosed(call_asked=position, end="expired", why=why), approval.session)
    yield Correlated(GuestApprovalExpired(approval=number, given=len(approval.operators)), approval.session)


# --- sessions -------------------------------------------------------------------------------------------------------


def _idle(state: GuestsState, event: Event) -> Decided:
    """The ends of sessions that were silent for too long, or for which there is no room."""
    left = len(state.sessions)
    oldest = next(iter(state.sessions.values()), None)
    if oldest is None or (left <= SESSIONS_MAX and oldest.last[:10] == event.time[:10]):
        return  # of the same day: asked with every call, and a day is long
    limit = time_after(event.time, -IDLE_SECONDS)
    for name, session in state.sessions.items():  # the one that was silent for longest first
        if session.last > limit and left <= SESSIONS_MAX:
            return
        left -= 1
        if name != event.data.session:
            yield from _closed(name, session, None)


def _closed(name: str, session: Session, ended: GuestSessionEnded | None) -> Iterator[Correlated]:
    """The end of a session and of its calls, and how far it is known what it did."""
    why, unknown, refused_ones = "its session ended", session.unknown, session.refused
    for call in session.calls.values():
        yield Correlated(_end(call, why), name)
        unknown, refused_ones = unknown + (not call.waits), refused_ones + (call.waits > 0)
    unseen = max(ended.unseen if ended is not None else 0, session.unmatched)
    reasons = []
    if session.observed:
        reasons.append("mode observe held nothing up")
    if ended is None:
        reasons.append("its end was not seen")
    elif ended.transcript != "read":
        reasons.append("no transcript was held against the log")
    if not session.canary:
        reasons.append("its start was not seen")
    yield Correlated(
        GuestSessionClosed(
            session=name, unseen=unseen, asked=session.asked, allowed=session.allowed, refused=refused_ones,
            unknown=unknown, reasons=reasons,
            proof="not_proven" if reasons else "in_part" if unseen else "gated",
        ),
        name,
    )  # fmt: skip
