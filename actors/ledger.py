"""The ledger of effects: which requests have no terminal event yet (DESIGN §3, effects).

An effect is opened by its request and closed by exactly one terminal event: the gate's refusal, or the fact whose
cause is the request. A cancellation is asked for by the requesting actor or follows from the permit's revocation.
"""

from __future__ import annotations

from typing import Final

import msgspec

from contracts.effect import EffectCancelRequested, EffectRefused
from contracts.oa import OaPermitRevoked
from contracts.payload import OutwardRequest, effect_of
from events.event import Event

OPEN_EFFECTS_MAX: Final = 100_000
"""So many effects may be open at once."""


class Cancel(msgspec.Struct, frozen=True):
    """The performer of ``request`` is to be ended. ``reason``: cancel_requested or permit_revoked."""

    request: int
    reason: str


class EffectLedger:
    """Open effects by the position of their request."""

    def __init__(self) -> None:
        self.open: dict[int, Event] = {}

    @property
    def full(self) -> bool:
        """Whether no more effects may be requested until some end."""
        return len(self.open) >= OPEN_EFFECTS_MAX

    def is_open(self, request: int) -> bool:
        """Whether the request has no terminal event yet."""
        return request in self.open

    def book(self, event: Event) -> tuple[bool, list[Cancel]]:
        """Take an event of the log. Returns whether it opens an effect, and what it cancels."""
        data = event.data
        if event.kind == "fact":
            self.open.pop(event.causation, None)
            return False, []
        if effect_of(data) is not None:
            self.open[event.position] = event
            return True, []
        if isinstance(data, EffectRefused):
            self.open.pop(data.request, None)
        elif isinstance(data, EffectCancelRequested):
            request = self.open.get(data.request)
            if request is not None and request.actor == event.actor:
                return False, [Cancel(data.request, "cancel_requested")]
        elif isinstance(data, OaPermitRevoked):
            return False, [
                Cancel(position, "permit_revoked")
                for position, request in self.open.items()
                if isinstance(request.data, OutwardRequest) and request.data.permit == data.permit
            ]
        return False, []
