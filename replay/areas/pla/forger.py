"""A hostile actor: it asks in other actors' names for what presses keys, and must be believed by nobody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from pmagent.contracts.hid import HidArmRequested, HidCommitRequested, HidPrepareRequested, arm_scope, commit_scope
from pmagent.contracts.oa import OaPermitGranted, OaPermitRequested
from pmagent.contracts.payload import Payload, Scope, event_type
from pmagent.contracts.pla import Action, ActionClass
from pmagent.contracts.pla_events import PlaApproved, PlaExecutionRequested
from pmagent.events.event import Event, time_after

INTRUDER: Final = "intruder"

How = Literal["execution", "approval", "prepare", "commit", "permit", "arm"]


@event_type("sim.forgery_asked")
class ForgeryAsked(Payload, frozen=True, kw_only=True):
    """Asks the intruder for a forgery of the kind ``how``. ``permit``: a position that it claims as its permit."""

    how: How
    session_id: str
    boot_id: str
    device_id: str
    proposal_id: str
    execution_id: str
    digest: str
    action: Action
    permit: int
    approval: int
    action_class: ActionClass = "feature_work"


class ForgerState(msgspec.Struct, frozen=True):
    """Its last request, and the permits that it asked for."""

    asked: ForgeryAsked | None = None
    wanted: dict[int, ForgeryAsked] = {}


class Forger:
    """See the module."""

    name = INTRUDER
    hears: frozenset[type[msgspec.Struct]] = frozenset((ForgeryAsked, OaPermitGranted))

    def initial(self) -> ForgerState:
        """Nothing asked."""
        return ForgerState()

    def evolve(self, state: ForgerState, event: Event) -> ForgerState:
        """Note what is wanted."""
        if isinstance(event.data, ForgeryAsked):
            return msgspec.structs.replace(state, asked=event.data)
        if isinstance(event.data, OaPermitRequested) and state.asked is not None:
            wanted = {**dict(list(state.wanted.items())[-7:]), event.position: state.asked}
            return msgspec.structs.replace(state, wanted=wanted)
        return state

    def decide(self, state: ForgerState, event: Event) -> Iterable[Payload]:
        """Forge."""
        data = event.data
        if isinstance(data, ForgeryAsked):
            return _forged(event, data)
        if isinstance(data, OaPermitGranted) and data.request in state.wanted:
            return _used(event, data, state.wanted[data.request])
        return ()


def _forged(event: Event, asked: ForgeryAsked) -> Iterable[Payload]:
    match asked.how:
        case "execution":
            yield _execution(event, asked)
        case "approval":
            yield PlaApproved(
                request=asked.approval, session_id=asked.session_id, proposal_id=asked.proposal_id, digest=asked.digest,
                operator_id="eve", channel="cli", expires_at=time_after(event.time, 60.0), executes=True,
            )  # fmt: skip
            yield _execution(event, asked)
        case "prepare":
            yield _prepare(event, asked)
        case "commit":
            yield _commit(asked, asked.permit)
        case "arm":
            yield _arm(asked, asked.permit)
        case "permit":
            for scope in _scopes(asked):
                yield OaPermitRequested(action=scope.action, subject=scope.subject, holder=INTRUDER)


def _scopes(asked: ForgeryAsked) -> list[Scope]:
    return [
        arm_scope(asked.action_class, asked.device_id),
        commit_scope(asked.action_class, asked.execution_id, asked.digest),
    ]


def _used(event: Event, granted: OaPermitGranted, asked: ForgeryAsked) -> Iterable[Payload]:
    """With a permit of its own it arms, or hands over and orders."""
    if granted.subject == _scopes(asked)[0].subject:
        yield _arm(asked, event.position)
    else:
        yield _prepare(event, asked)
        yield _commit(asked, event.position)


def _execution(event: Event, asked: ForgeryAsked) -> Payload:
    return PlaExecutionRequested(
        session_id=asked.session_id, proposal_id=asked.proposal_id, execution_id=asked.execution_id,
        approval=asked.approval, digest=asked.digest, action=asked.action, masked=False, operator_id="eve",
        decided_at=event.time,
    )  # fmt: skip


def _prepare(event: Event, asked: ForgeryAsked) -> Payload:
    return HidPrepareRequested(
        boot_id=asked.boot_id, execution_id=asked.execution_id, proposal_id=asked.proposal_id, digest=asked.digest,
        action=asked.action, masked=False, operator_id="eve", decided_at=event.time,
    )  # fmt: skip


def _commit(asked: ForgeryAsked, permit: int) -> Payload:
    return HidCommitRequested(
        permit=permit, boot_id=asked.boot_id, execution_id=asked.execution_id, digest=asked.digest,
        action_class=asked.action_class,
    )  # fmt: skip


def _arm(asked: ForgeryAsked, permit: int) -> Payload:
    return HidArmRequested(
        permit=permit, device_id=asked.device_id, boot_id=asked.boot_id, action_class=asked.action_class
    )
