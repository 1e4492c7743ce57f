"""The warden's state: the session, the mode, the device as far as it matters here, and proposals; pure."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from pmagent.actors.kernel.mode import Expected
from pmagent.contracts.kernel import Mode
from pmagent.contracts.pla import ActionClass, KillSwitch, PlaMode
from pmagent.contracts.pla_events import PlaProposed

PROPOSALS_KEPT: Final = 100
"""So many proposals stay in the state, the newest; older ones are in the session logs."""

Stands = Literal["open", "executing", "closed"]


class ProposalView(msgspec.Struct, frozen=True):
    """A proposal and what has come of it. ``position`` and ``proposed_at`` are its event's, ``timer`` is the position
    of the timer that it expires with (0: none runs); ``ended``: how its execution has ended, as the link says."""

    proposed: PlaProposed
    position: int
    proposed_at: str
    stands: Stands = "open"
    timer: int = 0
    outcome: str = ""
    why: str = ""
    decided_by: str = ""
    channel: str = ""
    decided_at: str = ""
    approval: int = 0
    approval_expires_at: str = ""
    execution_id: str = ""
    ended: str = ""
    closed_at: str = ""


class Device(msgspec.Struct, frozen=True):
    """The device that is linked now."""

    device_id: str
    boot_id: str
    port: str
    firmware_version: str
    compatible: bool
    text: str
    kill_switch_state: KillSwitch
    caps_lock: bool = False
    """The machine's, as the device reports it: with it no letter is typed."""
    undeclared: bool = True
    """Whether it types what names no layout."""
    practice: bool = False
    """Whether what it types goes to no machine."""
    error: str = ""
    """The last one that the device reports of itself, in its words."""


class WardenState(msgspec.Struct, frozen=True):
    """All of it. ``session_id`` is "" while there is no session; ``ending``: why it is over, as soon as what is being
    typed has come to an end (``ending_failed``: it was cut off). ``lasting``: a daemon runs, which can hold the line;
    ``running``: the last start has not ended. ``kernel``: the kernel's mode as observed since the last start, "" before
    that. ``paused_by``: the operator who has paused effects, "" while they start."""

    session_id: str = ""
    began_at: str = ""
    operator_id: str = ""
    ending: str = ""
    ending_failed: bool = False
    mode: PlaMode = "OBSERVE"
    action_class: ActionClass = "feature_work"
    lasting: bool = False
    running: bool = False
    kernel: Mode | Literal[""] = ""
    reasons: list[str] = []
    device: Device | None = None
    armed: bool = False
    proposals: dict[str, ProposalView] = {}
    halted: list[str] = []
    paused_by: str = ""
    expected: Expected = Expected()

    @property
    def open_proposals(self) -> list[ProposalView]:
        """Those that wait for a decision; at most one."""
        return [one for one in self.proposals.values() if one.stands == "open"]

    @property
    def executing(self) -> ProposalView | None:
        """The one that was approved and is being carried out."""
        return next((one for one in self.proposals.values() if one.stands == "executing"), None)


def held(state: WardenState, view: ProposalView) -> WardenState:
    """The state with a proposal as it is now; the oldest closed one goes when there are too many."""
    proposals = {**state.proposals, view.proposed.proposal_id: view}
    while len(proposals) > PROPOSALS_KEPT:
        old = next((name for name, one in proposals.items() if one.stands == "closed"), None)
        if old is None:
            break
        del proposals[old]
    return msgspec.structs.replace(state, proposals=proposals)
