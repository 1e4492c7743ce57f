"""What the log says about one proposal: why it was made, and all that came of it; reading only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from actors.pla.warden.actor import Warden
from actors.pla.warden.state import ProposalView, WardenState
from contracts.payload import typed
from contracts.pla_events import (
    PlaDecisionRequested,
    PlaFrameObserved,
    PlaProposalClosed,
    PlaProposalRequested,
    PlaProposed,
)
from events.blobs import BlobStore
from events.disk import RealDisk
from events.errors import NotFound
from events.event import Event, StoredEvent
from events.reader import event_at
from events.segments import SegmentReader
from events.storage import StorageReader
from pmagent.layout import Layout
from pmagent.log.source import line_runs
from pmagent.log.summaries import summary
from pmagent.log.tracing import causes

STEPS_MAX: Final = 200
"""So many events about a proposal are shown; an execution has about twenty."""

_ABOUT: Final = ("pla.", "hid.", "oa.permit_", "effect.", "control.")


class Step(msgspec.Struct, frozen=True):
    """An event as a line: ``gist`` is not clean."""

    position: int
    time: str
    actor: str
    type: str
    gist: str


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """Of one proposal: the request for it, the frame it rests on, the events that led to it (itself last), all that
    names it or its execution since (``more``: how many are left out), and the decision as it was handed in."""

    asked: PlaProposalRequested | None
    frame: PlaFrameObserved | None
    causes: list[Step]
    steps: list[Step]
    more: int
    decision: PlaDecisionRequested | None


def story(layout: Layout, position: int, execution_id: str) -> Story:
    """The story of the proposal whose ``pla.proposed`` stands at ``position``. Blocking. Raises NotFound,
    CorruptLog."""
    disk = RealDisk()
    storage = SegmentReader(disk, str(layout.log))
    try:
        return _Reading(storage, BlobStore(disk, str(layout.blobs))).story(position, execution_id)
    finally:
        storage.close()


def found(layout: Layout, proposal_id: str) -> ProposalView:
    """A proposal that the warden has forgotten, as the log tells of it. Blocking; it reads from the log's beginning.
    Raises NotFound, CorruptLog."""
    disk = RealDisk()
    storage = SegmentReader(disk, str(layout.log))
    try:
        return _Reading(storage, BlobStore(disk, str(layout.blobs))).view(proposal_id)
    finally:
        storage.close()


class _Reading:
    def __init__(self, storage: StorageReader, blobs: BlobStore) -> None:
        self._storage = storage
        self._blobs = blobs

    def story(self, position: int, execution_id: str) -> Story:
        stored = event_at(self._storage, position)
        proposed: PlaProposed = self._data(stored, PlaProposed)
        path, _ = causes(self._storage, stored)
        steps, more, decision = self._since(position, proposed.proposal_id, execution_id)
        return Story(
            asked=self._data(event_at(self._storage, proposed.request), PlaProposalRequested),
            frame=self._data(event_at(self._storage, proposed.frame), PlaFrameObserved) if proposed.frame else None,
            causes=[_step(event) for event in path], steps=steps, more=more, decision=decision,
        )  # fmt: skip

    def _data(self, stored: StoredEvent, shape: type[Any]) -> Any:
        """Its payload. Raises NotFound where another type stands: then the log is not what the proposal says."""
        event = typed(stored, self._blobs)
        if not isinstance(event.data, shape):
            raise NotFound(f"at {stored.position} stands {stored.type}, no {shape.__name__}", "pmagent log verify")
        return event.data

    def _since(
        self, position: int, proposal_id: str, execution_id: str
    ) -> tuple[list[Step], int, PlaDecisionRequested | None]:
        steps: list[Step] = []
        more = 0
        decision: PlaDecisionRequested | None = None
        decided = 0
        for event in self._naming(position + 1, proposal_id, execution_id):
            if len(steps) < STEPS_MAX:
                steps.append(_step(event))
            else:
                more += 1
            if event.type in ("pla.approved", "pla.rejected"):
                decided = event.causation
            if event.type == "pla.proposal_closed":
                break
        if decided:
            decision = self._data(event_at(self._storage, decided), PlaDecisionRequested)
        return steps, more, decision

    def _naming(self, start: int, *names: str) -> Iterator[StoredEvent]:
        """The events from ``start`` on whose payload holds one of these ids."""
        needles = [name.encode() for name in names if name]
        if start > self._storage.tail().position:
            return
        for run, tap in line_runs(self._storage, start):
            if any(needle in tap.run_bytes(len(run)) for needle in needles):
                for event in run:
                    if event.type.startswith(_ABOUT) and any(needle in bytes(event.data) for needle in needles):
                        yield event

    def view(self, proposal_id: str) -> ProposalView:
        """The events that name it, folded by the warden's own hand."""
        warden, state = Warden(), WardenState()
        for stored in self._naming(1, proposal_id):
            event = typed(stored, self._blobs)
            if not state.proposals:
                if isinstance(event.data, PlaProposed) and event.data.proposal_id == proposal_id:
                    state = WardenState(session_id=event.data.session_id, mode=event.data.mode)
                else:
                    continue
            state = warden.evolve(state, event)
            if _closes(event, proposal_id):
                break
        view = state.proposals.get(proposal_id)
        if view is None:
            raise NotFound(f"the log has no proposal {proposal_id}", "pmagent pla list shows the newest")
        return view


def _closes(event: Event, proposal_id: str) -> bool:
    return isinstance(event.data, PlaProposalClosed) and event.data.proposal_id == proposal_id


def _step(event: StoredEvent) -> Step:
    return Step(event.position, event.time, event.actor, event.type, summary(event))
