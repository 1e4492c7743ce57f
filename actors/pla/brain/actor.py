"""The brain: makes proposals of what operators ask for, and decides nothing about them; pure (docs/design.md §16.10).

    pla.proposal_requested -> (pla.frame_requested -> pla.frame_observed)? -> (model.asked -> model.replied)*
    -> pla.proposed | pla.proposal_refused

Each request has exactly one answer, whatever fails. A goal that states an action is proposed as it stands. A model is
asked only where the goal states none; what it replies is read as strictly as a document from outside, and is at most
one action of the contracts without a credential in it. Nothing here types: the warden holds the proposal until an
operator has decided on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from pmagent.actors.model.actor import GATEWAY
from pmagent.actors.pla.brain import state as fold
from pmagent.actors.pla.brain.answers import (
    HALTED,
    Decision,
    ended,
    frame_failure,
    given_up,
    looked,
    model_failure,
    proposed,
    refused,
    refused_at_once,
)
from pmagent.actors.pla.brain.model_goal import is_showable
from pmagent.actors.pla.brain.objections import refusal
from pmagent.actors.pla.brain.question import question
from pmagent.actors.pla.brain.reply import on_reply
from pmagent.actors.pla.brain.state import LOOKS_MAX, BrainState, Look, Pending
from pmagent.actors.pla.warden.actor import BRAIN, WARDEN
from pmagent.contracts.effect import EFFECT_ENDS, ActorHalted, ActorResumed, EffectEnd, RequestRefused
from pmagent.contracts.model import ModelAsked, ModelFailed, ModelReplied
from pmagent.contracts.pla_events import (
    PlaFrameFailed,
    PlaFrameObserved,
    PlaFrameRequested,
    PlaModeChanged,
    PlaObserved,
    PlaObserveRequested,
    PlaProposalClosed,
    PlaProposalRefused,
    PlaProposalRequested,
    PlaProposed,
    PlaSessionBegan,
    PlaSessionEnded,
)
from pmagent.events.event import Event

replace = msgspec.structs.replace

_OUTSIDE: Final = (
    PlaProposalRequested, PlaObserveRequested, PlaFrameObserved, PlaFrameFailed, ModelReplied, ActorResumed,
)
"""Inputs from outside: facts. An actor that decides such an event is not heard."""


class Brain:
    """See the module."""

    name = BRAIN
    hears: frozenset[type[msgspec.Struct]] = frozenset(
        (
            PlaProposalRequested, PlaObserveRequested, PlaFrameObserved, PlaFrameFailed, ModelReplied, ModelFailed,
            PlaSessionBegan, PlaSessionEnded, PlaModeChanged, PlaProposalClosed, *EFFECT_ENDS, RequestRefused,
            ActorHalted, ActorResumed,
        )
    )

    def initial(self) -> BrainState:
        """No session, nothing asked for."""
        return BrainState()

    def evolve(self, state: BrainState, event: Event) -> BrainState:
        """Fold an input or a decision of its own."""
        if event.kind == "decision" and event.actor == BRAIN:
            return _own(state, event)
        if event.kind == "decision" and event.actor == WARDEN:
            return _warden(state, event)
        if not _is_genuine(event):
            return state
        match event.data:
            case PlaProposalRequested() as asked if refusal(state, asked) is None:
                taken = Pending(event.position, event.correlation, state.session_id, state.mode, asked)
                return replace(state, pending=taken)
            case PlaObserveRequested() if len(state.looks) < LOOKS_MAX:
                look = Look(event.position, event.correlation)
                return replace(state, looks={**state.looks, event.position: look})
            case PlaFrameObserved(request=request) as seen if (pending := state.waiting(request)) is not None:
                return replace(state, pending=replace(pending, waits=0, frame=event.position, seen=seen))
            case RequestRefused(request=request, name=name) if name == BRAIN:
                return fold.answered(state, request)  # the engine has answered in its stead
            case ActorHalted(name=name) if name == WARDEN:
                return replace(state, halted=True)
            case ActorResumed(name=name) if name == WARDEN:
                return replace(state, halted=False)
        return state

    def decide(self, state: BrainState, event: Event) -> Iterable[Decision]:
        """The decisions that follow from an input."""
        if not _is_genuine(event):
            return []
        match event.data:
            case PlaProposalRequested() as asked:
                return list(_asked(state, event, asked))
            case PlaObserveRequested() as asked:
                return list(_look(state, event, asked))
            case PlaModeChanged() | PlaSessionEnded() | ActorHalted() | ActorResumed():
                return list(_stopped(state, event))
        return list(_answered(state, event))


def _is_genuine(event: Event) -> bool:
    return event.kind == "fact" or not isinstance(event.data, _OUTSIDE)


# --- folding -------------------------------------------------------------------------------------------------------


def _own(state: BrainState, event: Event) -> BrainState:
    match event.data:
        case PlaFrameRequested():
            return fold.framed(state, event.causation, event.position)
        case ModelAsked(messages=messages) if state.pending is not None:
            more = messages[2:]
            pictured = messages[1].images is not msgspec.UNSET
            pending = replace(
                state.pending, waits=event.position, model=True, more=more, tries=len(more) // 2, pictured=pictured
            )
            return replace(state, pending=pending)
        case PlaProposed(request=request, proposal_id=proposal_id):
            return replace(fold.answered(state, request), proposal_id=proposal_id)
        case PlaProposalRefused(request=request) | PlaObserved(request=request):
            return fold.answered(state, request)
    return state


def _warden(state: BrainState, event: Event) -> BrainState:
    """The session and the mode are the warden's, and nobody else's word on them counts."""
    match event.data:
        case PlaSessionBegan(session_id=session_id, mode=mode):
            return replace(state, session_id=session_id, mode=mode, proposal_id="")
        case PlaSessionEnded():
            return replace(state, session_id="", mode="OBSERVE", proposal_id="")
        case PlaModeChanged(mode=mode):
            pending = None if state.pending is None else replace(state.pending, mode=mode)
            return replace(state, mode=mode, pending=pending)
        case PlaProposalClosed(proposal_id=proposal_id) if proposal_id == state.proposal_id:
            return replace(state, proposal_id="")
    return state


# --- deciding ------------------------------------------------------------------------------------------------------


def _asked(state: BrainState, event: Event, asked: PlaProposalRequested) -> Iterator[Decision]:
    pending = state.pending
    if pending is None or pending.request != event.position:
        why = refusal(state, asked)
        assert why is not None, "what nothing stands against is taken up"
        yield from refused_at_once(state, event, why)
    elif asked.frame is not None:
        yield PlaFrameRequested(source=asked.frame)
    else:
        yield from _go_on(pending, event)


def _go_on(pending: Pending, event: Event) -> Iterator[Decision]:
    """The frame is there, or none is wanted."""
    if pending.asked.action is not None:
        yield proposed(pending, event)
    else:
        yield question(pending, pictured=is_showable(pending.seen))


def _look(state: BrainState, event: Event, asked: PlaObserveRequested) -> Iterator[Decision]:
    if event.position in state.looks:
        yield PlaFrameRequested(source=asked.frame)
        return
    why = f"{LOOKS_MAX} frames are being taken"
    yield PlaObserved(
        request=event.position, session_id=state.session_id, frame=0, reasons=[why], mend=["ask again in a moment"]
    )


def _answered(state: BrainState, event: Event) -> Iterator[Decision]:
    """Something that may have been waited for."""
    data = event.data
    position = data.ask if isinstance(data, ModelReplied | ModelFailed) else getattr(data, "request", 0)
    look = state.looking(position)
    if look is not None:
        yield looked(state, look, event)
        return
    if isinstance(data, PlaFrameObserved):  # folding it has taken it up
        pending = state.pending
        if pending is not None and pending.frame == event.position:
            yield from _go_on(pending, event)
        return
    pending = state.waiting(position)
    if pending is None:
        return
    if isinstance(data, ModelReplied):
        yield from on_reply(pending, event, data)
    elif isinstance(data, ModelFailed) and data.code == "rejected" and pending.pictured:
        yield question(pending, pictured=False)  # not every model takes pictures; the text may do
    elif isinstance(data, ModelFailed):
        yield refused(pending, "model", *model_failure(data))
    elif isinstance(data, RequestRefused):
        yield refused(pending, "model", f"{data.name} is {data.reason}", HALTED)
    elif isinstance(data, PlaFrameFailed):
        yield refused(pending, "frame", data.text, data.mend)
    elif isinstance(data, EffectEnd):
        yield refused(pending, "frame", *frame_failure(data))


def _stopped(state: BrainState, event: Event) -> Iterator[Decision]:
    """The mode, the session, or an actor that is needed has gone."""
    pending = state.pending
    match event.data:
        case ActorResumed(name=name) if name == BRAIN:
            yield from given_up(state)
        case PlaModeChanged(mode="OBSERVE", why=why) if pending is not None and event.actor == WARDEN:
            yield from ended(pending, "mode", f"the mode is OBSERVE: {why}", "pmagent pla mode SUGGEST")
        case PlaSessionEnded(reason=why) if pending is not None and event.actor == WARDEN:
            yield from ended(pending, "mode", f"the session is over: {why}", "pmagent pla mode SUGGEST")
        case ActorHalted(name=name) if pending is not None and name == WARDEN:
            yield from ended(pending, "mode", "the warden is halted", HALTED)
        case ActorHalted(name=name) if pending is not None and name == GATEWAY and pending.model:
            yield refused(pending, "model", "the model gateway is halted", HALTED)
