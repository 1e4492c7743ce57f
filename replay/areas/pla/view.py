"""An operator's view: the current state, read from the log as it grows."""

from __future__ import annotations

from collections.abc import Sequence

from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.hid import HidArmed, HidDisarmed, HidDisarmRequested, HidLinked, HidLost, HidReported
from pmagent.contracts.kernel import KernelModeDecided, KernelObserved
from pmagent.contracts.pla import PlaMode
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaExecutionRequested,
    PlaModeChanged,
    PlaProposalClosed,
    PlaProposed,
    PlaSessionBegan,
    PlaSessionEnded,
)
from pmagent.events.event import Event


class OperatorView:
    """The current state. ``approvals``: the position of each, and the execution that it led to; ``open``: the event of
    the proposal that waits for a decision."""

    def __init__(self) -> None:
        self._read = 0
        self.session_id = ""
        self.mode: PlaMode = "OBSERVE"
        self.mode_since = 0
        """Position of the event that it changed with."""
        self.surface = ""
        self.linked: HidLinked | None = None
        self.kernel = ""
        self.ready = False
        self.armed = False
        self.open: Event | None = None
        self.executing: PlaExecutionRequested | None = None
        self.approvals: list[tuple[int, PlaApproved]] = []
        self.closed: list[PlaProposed] = []

    def look(self, history: Sequence[Event]) -> OperatorView:
        """Read what is new."""
        for event in history[self._read :]:
            self._take(event)
        self._read = len(history)
        return self

    def _take(self, event: Event) -> None:
        data = event.data
        match data:
            case DaemonStarted(surface=surface):
                self.surface, self.kernel = surface, ""
                self.linked, self.armed, self.ready = None, False, False
            case KernelObserved():
                self.kernel = self.kernel or "NORMAL"
            case KernelModeDecided(mode=kernel):
                self.kernel = kernel
            case HidLinked(compatible=compatible, kill_switch_state=kill):
                self.linked, self.armed, self.ready = data, False, compatible and kill == "ARMED"
            case HidReported(kill_switch_state=kill):
                self.ready = self.ready and kill == "ARMED"
            case HidLost():
                self.linked, self.armed, self.ready = None, False, False
            case HidArmed():
                self.armed = True
            case HidDisarmed() | HidDisarmRequested():
                self.armed = False
            case PlaSessionBegan(session_id=session_id):
                self.session_id = session_id
            case PlaSessionEnded():
                self.session_id = ""
            case PlaModeChanged(mode=mode) if event.actor == "warden":
                self.mode, self.mode_since = mode, event.position
                self.armed = self.armed and mode == "EXECUTE"
            case _:
                self._proposal(event)

    def _proposal(self, event: Event) -> None:
        if event.actor not in ("brain", "warden"):
            return
        match event.data:
            case PlaProposed():
                self.open = event
            case PlaApproved() as approved:
                self.approvals.append((event.position, approved))
            case PlaExecutionRequested() as executing:
                self.executing = executing
            case PlaProposalClosed(proposal_id=name):
                if self.open is not None and self.open.data.proposal_id == name:
                    self.closed.append(self.open.data)
                    self.open = None
                if self.executing is not None and self.executing.proposal_id == name:
                    self.executing = None
