"""One proposal in the log: why it was made, and all that came of it; reading only."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final

import msgspec

from pmagent.actors.pla.warden.actor import Warden
from pmagent.actors.pla.warden.state import ProposalView, WardenState
from pmagent.contracts.payload import typed
from pmagent.contracts.pla_events import (
    PlaDecisionRequested,
    PlaExecuted,
    PlaExecutionRequested,
    PlaFrameObserved,
    PlaProposalClosed,
    PlaProposalRequested,
    PlaProposed,
)
from pmagent.events.errors import NotFound
from pmagent.events.event import StoredEvent
from pmagent.events.reader import event_at
from pmagent.events.storage import Blobs, StorageReader
from pmagent.log.source import line_runs
from pmagent.log.summaries import summary
from pmagent.log.tracing import causes
from pmagent.workspace.layout import Layout

STEPS_MAX: Final = 200
"""So many events about a proposal are shown; an execution has about twenty."""

KEPT_MAX: Final = 64
"""So many proposals are remembered."""

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
    names it or its execution since (``more``: how many are left out), the decision as it was handed in, and the word in
    which the device says why it ended ("": it was not executed), with how many of its reports it had sent then."""

    asked: PlaProposalRequested | None
    frame: PlaFrameObserved | None
    causes: list[Step]
    steps: list[Step]
    more: int
    decision: PlaDecisionRequested | None
    code: str = ""
    done: int = 0
    of: int = 0


class Stories:
    """Stories of one workspace's proposals. A page is made often, and the log may grow fast: what was read of a
    proposal is kept, and the next look reads on from there. Safe to use from several threads."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._lock = threading.Lock()
        self._known: OrderedDict[int, _Progress] = OrderedDict()
        self._found: OrderedDict[str, ProposalView] = OrderedDict()
        self._log_id = ""

    def story(self, position: int) -> Story:
        """The story of the proposal whose ``pla.proposed`` stands at ``position``. Blocking. Raises NotFound,
        CorruptLog."""
        with self._lock, self._reading() as reading:
            known = self._known.pop(position, None) or reading.begun(position)
            reading.go_on(known)
            self._known[position] = known
            while len(self._known) > KEPT_MAX:
                self._known.popitem(last=False)
            return known.story()

    def found(self, proposal_id: str) -> ProposalView:
        """A proposal that the warden has forgotten, as the log tells of it. Blocking; the first time it is looked for
        from the log's beginning. Raises NotFound, CorruptLog."""
        with self._lock, self._reading() as reading:
            view = self._found.get(proposal_id)
            if view is None:
                view = self._found[proposal_id] = reading.view(proposal_id)
            while len(self._found) > KEPT_MAX:
                self._found.popitem(last=False)
            return view

    @contextmanager
    def _reading(self) -> Iterator[_Reading]:
        store = self._layout.store
        with closing(store.reader()) as storage:
            if storage.log_id() != self._log_id:  # another log lies there now
                self._log_id = storage.log_id()
                self._known.clear()
                self._found.clear()
            yield _Reading(storage, store.blobs())


class _Progress:
    """The part of one proposal that was read, and where to read on."""

    def __init__(self, proposal_id: str, story: Story, next_: int) -> None:
        self.names = [proposal_id.encode()]
        self.next = next_
        self.steps: list[Step] = []
        self.more = 0
        self.decision: PlaDecisionRequested | None = None
        self.code, self.done, self.of = "", 0, 0
        self.over = False
        self._story = story

    def story(self) -> Story:
        return msgspec.structs.replace(
            self._story, steps=list(self.steps), more=self.more, decision=self.decision, code=self.code, done=self.done,
            of=self.of,
        )  # fmt: skip


class _Reading:
    """One look at the log."""

    def __init__(self, storage: StorageReader, blobs: Blobs) -> None:
        self._storage = storage
        self._blobs = blobs

    def begun(self, position: int) -> _Progress:
        stored = event_at(self._storage, position)
        proposed: PlaProposed = self._data(stored, PlaProposed)
        path, _ = causes(self._storage, stored)
        story = Story(
            asked=self._data(event_at(self._storage, proposed.request), PlaProposalRequested),
            frame=self._data(event_at(self._storage, proposed.frame), PlaFrameObserved) if proposed.frame else None,
            causes=[_step(event) for event in path], steps=[], more=0, decision=None,
        )  # fmt: skip
        return _Progress(proposed.proposal_id, story, position + 1)

    def go_on(self, progress: _Progress) -> None:
        """Read what the log has of it by now; nothing names a proposal that is over. Events that name only its
        execution come behind the first event that names both."""
        end = self._storage.tail().position
        if progress.over or progress.next > end:
            return
        for event in self._naming(progress.next, end, progress.names):
            if len(progress.steps) < STEPS_MAX:
                progress.steps.append(_step(event))
            else:
                progress.more += 1
            if event.type == "pla.execution_requested":
                progress.names.append(self._data(event, PlaExecutionRequested).execution_id.encode())
            elif event.type in ("pla.approved", "pla.rejected"):
                progress.decision = self._data(event_at(self._storage, event.causation), PlaDecisionRequested)
            elif event.type == "pla.executed":
                executed = self._data(event, PlaExecuted)
                progress.code, progress.done, progress.of = executed.code, executed.done, executed.of
            elif event.type == "pla.proposal_closed":
                progress.over = True
                break
        progress.next = end + 1

    def _data(self, stored: StoredEvent, shape: type[Any]) -> Any:
        """Its payload. Raises NotFound where another type stands: then the log is not what the proposal says."""
        event = typed(stored, self._blobs)
        if not isinstance(event.data, shape):
            raise NotFound(f"at {stored.position} stands {stored.type}, no {shape.__name__}", "pmagent log verify")
        return event.data

    def _naming(self, start: int, end: int, names: list[bytes]) -> Iterator[StoredEvent]:
        """The events from ``start`` to ``end`` whose payload holds one of these ids; ``names`` may grow meanwhile."""
        for run, tap in line_runs(self._storage, start, end):
            if any(name in tap.run_bytes(len(run)) for name in names):
                for event in run:
                    if event.type.startswith(_ABOUT) and any(name in bytes(event.data) for name in names):
                        yield event

    def view(self, proposal_id: str) -> ProposalView:
        """The events that name it, folded by the warden's own hand."""
        warden, state = Warden(), WardenState()
        for stored in self._naming(1, self._storage.tail().position, [proposal_id.encode()]):
            event = typed(stored, self._blobs)
            if not state.session_id:
                if not isinstance(event.data, PlaProposed) or event.data.proposal_id != proposal_id:
                    continue
                state = WardenState(session_id=event.data.session_id, mode=event.data.mode)
            state = warden.evolve(state, event)
            if isinstance(event.data, PlaProposalClosed) and event.data.proposal_id == proposal_id:
                break
        view = state.proposals.get(proposal_id)
        if view is None:
            raise NotFound(f"the log has no proposal {proposal_id}", "pmagent pla list shows the newest")
        return view


def _step(event: StoredEvent) -> Step:
    return Step(event.position, event.time, event.actor, event.type, summary(event))
