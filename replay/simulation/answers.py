"""How effects end, what answers a request, and what stands against an outward request, by the events alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import UnsetType

from pmagent.contracts.control import ResumeRequested
from pmagent.contracts.effect import EffectRefused, RequestRefused
from pmagent.contracts.oa import OaPermitGranted, OaPermitRevoked
from pmagent.contracts.orchestra_events import RunEnded
from pmagent.contracts.payload import OutwardRequest, effect_of, may_answer
from pmagent.events.event import Event
from pmagent.replay.areas.invariants_pla import OWN
from pmagent.replay.simulation.invariants_pauses import Pauses

_AREAS: Final = frozenset(("audit", "check", "control", "guest", "oa", "pla", "reasoning", "run", "sim"))
"""Where answers to requests come from."""


def verdicts(history: Sequence[Event]) -> dict[int, list[str]]:
    """Objections to each outward request: its position -> objections, none for a good one."""
    grants: dict[int, OaPermitGranted] = {}
    used: Counter[int] = Counter()
    revoked: set[int | UnsetType] = set()
    found: dict[int, list[str]] = {}
    pauses = Pauses()
    for event in history:
        data = event.data
        if isinstance(data, ResumeRequested):  # the gate answers at once
            found |= {at: ["expired in a pause"] for at, until in pauses.held.items() if event.time >= until}
        pauses.take(event)
        if event.kind == "fact":
            continue
        if isinstance(data, OaPermitGranted) and event.actor == "oa":
            grants[event.position] = data
        elif isinstance(data, OaPermitRevoked | RunEnded):
            revoked.add(data.permit)
        elif isinstance(data, OutwardRequest):
            grant = grants.get(data.permit)
            found[event.position] = ["no grant"] if grant is None else [
                name for name, holds in (
                    ("another holder", grant.holder != event.actor),
                    ("another action", grant.action != data.scope().action),
                    ("another subject", grant.subject != data.scope().subject),
                    ("expired", event.time >= grant.expires_at),
                    ("used up", used[data.permit] >= grant.uses),
                    ("revoked", data.permit in revoked),
                    ("paused", bool(pauses.since) and not data.waits),
                ) if holds
            ]
            used[data.permit] += not found[event.position]
    return found


def ends_of(history: Sequence[Event]) -> Counter[int]:
    """Position of a request for an effect -> how often it has come to its end."""
    ends: Counter[int] = Counter()
    for event in history:
        if isinstance(event.data, EffectRefused):
            ends[event.data.request] += 1
        elif event.kind == "fact":
            ends[event.causation] += 1
        elif (at := answered_effect(history, event)) and not ends[at]:
            ends[at] += 1
    return ends


def requests_effect(event: Event) -> bool:
    """Whether the event requests an effect."""
    effect = effect_of(event.data)
    return effect is not None and (event.kind == "decision" or bool(effect.answers))


def answered_effect(history: Sequence[Event], event: Event) -> int:
    """The position of the effect that goes on until ``event`` answers its request; 0: there is none."""
    at = getattr(event.data, "request", 0) if may_answer(type(event.data)) else 0
    effect = effect_of(history[at - 1].data) if 0 < at < event.position else None
    return at if effect is not None and event.type in effect.answers else 0


def answered_request(event: Event) -> int:
    """The position of the request that ``event`` answers; 0 when it answers none."""
    if event.kind != "decision" or isinstance(event.data, EffectRefused):
        return 0
    if not isinstance(event.data, RequestRefused):
        area = event.type.partition(".")[0]
        if area not in _AREAS or effect_of(event.data) is not None:
            return 0
        if OWN.get(type(event.data), event.actor) != event.actor:
            return 0  # an answer in another's name
    return int(getattr(event.data, "request", 0))
