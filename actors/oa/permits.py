"""Permits: granted by the mode table, for a bounded time and number of uses; revoked when it forbids them;
pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from pmagent.actors.oa.policy import ACTIONS, allows
from pmagent.actors.oa.state import PERMITS_MAX, OaActorState, Permit
from pmagent.contracts.kernel import KernelModeDecided
from pmagent.contracts.oa import (
    OaPermitGranted,
    OaPermitRefused,
    OaPermitReleased,
    OaPermitReleaseRefused,
    OaPermitReleaseRequested,
    OaPermitRequested,
    OaPermitRevoked,
)
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event, time_after

USES_MAX = 100_000
SECONDS_MAX = 86_400.0
SCOPE_CHARS_MAX = 4096
"""Bounds of what one permit can be for."""


def answer(state: OaActorState, now: str, request: int, asked: OaPermitRequested) -> Payload:
    """Granted or refused at log time ``now``, by the newest observation. Default deny."""
    reasons, mend = _objections(state, now, asked)
    if reasons or state.standing is None:
        action, subject = asked.action[:SCOPE_CHARS_MAX], asked.subject[:SCOPE_CHARS_MAX]
        return OaPermitRefused(request=request, action=action, subject=subject, reasons=reasons, mend=mend)
    return OaPermitGranted(
        request=request, action=asked.action, subject=asked.subject, holder=asked.holder, uses=asked.uses,
        expires_at=time_after(now, asked.seconds), mode=state.standing.mode,
    )


def _objections(state: OaActorState, now: str, asked: OaPermitRequested) -> tuple[list[str], list[str]]:
    reasons: list[str] = []
    mend: list[str] = []
    if asked.action not in ACTIONS:
        reasons.append("unknown action")
        mend.append(f"use one of: {', '.join(sorted(ACTIONS))}")
    if not asked.subject or not asked.holder:
        reasons.append("subject or holder is empty")
        mend.append("say what is acted on, and who acts")
    if max(len(asked.action), len(asked.subject), len(asked.holder)) > SCOPE_CHARS_MAX:
        reasons.append("action, subject or holder is too long")
        mend.append(f"use at most {SCOPE_CHARS_MAX} characters for each")
    if not 1 <= asked.uses <= USES_MAX:
        reasons.append("uses out of bounds")
        mend.append(f"ask for 1 to {USES_MAX} uses")
    if not (math.isfinite(asked.seconds) and 0 < asked.seconds <= SECONDS_MAX):
        reasons.append("seconds out of bounds")
        mend.append(f"ask for more than 0 and at most {SECONDS_MAX:.0f} seconds")
    if state.unwatched:
        reasons.append("the kernel watcher is halted")
        mend.append("start again with a version that does not fail; pmagent log tail --type actor.halted shows where")
    if state.standing is None:
        reasons.append("the kernel has not been observed since the start")
        mend.append("ask again when the surfaces have been read")
    elif asked.action in ACTIONS and not allows(state.standing.mode, asked.action):
        reasons.append(f"{asked.action} is forbidden in {state.standing.mode}")
        reasons += [reason.text for reason in state.standing.reasons]
        mend += dict.fromkeys(reason.mend for reason in state.standing.reasons if reason.mend)
    if len(state.permits) >= PERMITS_MAX and len(live(state.permits, now)) >= PERMITS_MAX:
        reasons.append("too many live permits")
        mend.append("wait until some have expired")
    return reasons, mend


def revocations(state: OaActorState, event: Event, decided: KernelModeDecided) -> Iterator[Correlated]:
    """Revocations by a new mode: on going to BLOCKED of every live permit, else of those that it forbids."""
    everything = decided.mode == "BLOCKED" and decided.previous != "BLOCKED"
    for position, permit in live(state.permits, event.time).items():
        if everything or not allows(decided.mode, permit.action):
            yield Correlated(OaPermitRevoked(permit=position, reason=f"mode {decided.mode}"), permit.correlation)


def unwatched(state: OaActorState, event: Event) -> Iterator[Correlated]:
    """Nobody decides the mode any more: every live permit is taken back."""
    for position, permit in live(state.permits, event.time).items():
        yield Correlated(OaPermitRevoked(permit=position, reason="the kernel watcher is halted"), permit.correlation)


def adopted(state: OaActorState, event: Event) -> Iterator[Correlated]:
    """The log came from elsewhere: nothing that was permitted there is permitted here."""
    for position, permit in live(state.permits, event.time).items():
        yield Correlated(OaPermitRevoked(permit=position, reason="the log was adopted"), permit.correlation)


def ended(state: OaActorState, event: Event, run_id: str) -> Iterator[Correlated]:
    """A run is over: its live permits are taken back, so that nothing goes on, nor begins, under them."""
    for position, permit in live(state.permits, event.time).items():
        if permit.correlation == run_id:
            yield Correlated(OaPermitRevoked(permit=position, reason="its run is over"), run_id)


SWEEP_PERMITS: Final = 32
"""Expired permits are dropped whenever so many more are held; a divisor of ``PERMITS_MAX``, which is never passed."""


def live(permits: dict[int, Permit], now: str) -> dict[int, Permit]:
    """The permits that have not expired at log time ``now``."""
    return {position: permit for position, permit in permits.items() if permit.expires_at > now}


def granted(permits: dict[int, Permit], event: Event, payload: OaPermitGranted) -> dict[int, Permit]:
    """The live permits with the one that ``event`` granted; expired ones go now and then, for each grant copies all."""
    kept = permits if len(permits) % SWEEP_PERMITS else live(permits, event.time)
    return kept | {event.position: _permit(event, payload)}


def _permit(event: Event, payload: OaPermitGranted) -> Permit:
    return Permit(payload.action, payload.subject, payload.expires_at, event.correlation, payload.holder)


def released(state: OaActorState, event: Event, asked: OaPermitReleaseRequested) -> Iterator[Payload | Correlated]:
    """The permit is taken back because its holder needs it no more. An actor speaks only for itself."""
    permit = live(state.permits, event.time).get(asked.permit)
    reason = ""
    if permit is None:
        reason = f"there is no live permit {asked.permit}"
    elif permit.holder != asked.holder or (event.kind == "decision" and event.actor != asked.holder):
        reason = f"permit {asked.permit} is held by {permit.holder}"
    if permit is None or reason:
        mend = ["pmagent log tail --type oa.permit_granted shows permits and their holders"]
        yield OaPermitReleaseRefused(request=event.position, permit=asked.permit, reasons=[reason], mend=mend)
        return
    yield Correlated(OaPermitRevoked(permit=asked.permit, reason="released by its holder"), permit.correlation)
    yield OaPermitReleased(request=event.position, permit=asked.permit)


def revoked(permits: dict[int, Permit], position: int) -> dict[int, Permit]:
    """The live permits without the one at ``position``."""
    return {kept: permit for kept, permit in permits.items() if kept != position}
