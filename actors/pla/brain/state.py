"""The brain's state: the session and its mode, the request that is under way, who only looks; pure."""

from __future__ import annotations

from typing import Final

import msgspec

from pmagent.contracts.model import ModelMessage
from pmagent.contracts.pla import PlaMode
from pmagent.contracts.pla_events import PlaFrameObserved, PlaProposalRequested

LOOKS_MAX: Final = 8
"""So many may look at a frame at once; a further one is answered at once."""

replace = msgspec.structs.replace


class Pending(msgspec.Struct, frozen=True):
    """The request for a proposal at position ``request`` on its way: what it waits for is requested at ``waits`` (0:
    nothing), a ``model`` or a frame. ``mode``: the mode now. ``frame``: position of the frame that was ``seen``.
    ``tries``: replies that did not fit, and ``more`` what was said about them; ``pictured``: the model is shown the
    picture."""

    request: int
    correlation: str
    session_id: str
    mode: PlaMode
    asked: PlaProposalRequested
    waits: int = 0
    model: bool = False
    frame: int = 0
    seen: PlaFrameObserved | None = None
    tries: int = 0
    more: list[ModelMessage] = []
    pictured: bool = False


class Look(msgspec.Struct, frozen=True):
    """A request to look at position ``request``; the frame is requested at ``waits``."""

    request: int
    correlation: str
    waits: int = 0


class BrainState(msgspec.Struct, frozen=True):
    """All of it. ``proposal_id`` is the open proposal's, "" while there is none; ``halted``: the warden is."""

    session_id: str = ""
    mode: PlaMode = "OBSERVE"
    proposal_id: str = ""
    pending: Pending | None = None
    looks: dict[int, Look] = {}
    halted: bool = False

    def looking(self, frame_request: int) -> Look | None:
        """The looks that wait for the frame requested at this position."""
        return next((one for one in self.looks.values() if one.waits == frame_request), None) if frame_request else None

    def waiting(self, position: int) -> Pending | None:
        """The request that waits for what was requested at this position."""
        pending = self.pending
        return pending if pending is not None and position and pending.waits == position else None


def framed(state: BrainState, cause: int, position: int) -> BrainState:
    """A frame is requested at ``position`` for the request at ``cause``."""
    if state.pending is not None and state.pending.request == cause:
        return replace(state, pending=replace(state.pending, waits=position, model=False))
    look = state.looks.get(cause)
    return state if look is None else replace(state, looks={**state.looks, cause: replace(look, waits=position)})


def answered(state: BrainState, request: int) -> BrainState:
    """The request has its answer."""
    if state.pending is not None and state.pending.request == request:
        return replace(state, pending=None)
    if request not in state.looks:
        return state
    return replace(state, looks={at: look for at, look in state.looks.items() if at != request})
