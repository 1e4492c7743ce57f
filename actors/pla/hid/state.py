"""The HID link's state: the device, the lease, approvals that are not used yet, and the one execution; pure."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from pmagent.contracts.pla import Action, ActionClass, KillSwitch, PlaMode
from pmagent.contracts.pla_events import PlaApproved

HID: Final = "hid"

EARLIER_LEASE_SECONDS: Final = 5.0
"""The lease of a device with a contract before 1.1."""

Step = Literal["prepare", "permit", "commit", "doubt"]
"""Where an execution is: the device is given the text; the OA is asked; the order to type was given; it was given and
nobody answered."""


class Link(msgspec.Struct, frozen=True):
    """The device that is linked now; ``text`` says why it is not ``compatible``."""

    device_id: str
    boot_id: str
    compatible: bool
    text: str
    kill_switch_state: KillSwitch
    by_line: bool = False
    """Whether the line's owner renews its lease."""
    undeclared: bool = True
    """Whether it types what names no layout."""


class Arming(msgspec.Struct, frozen=True):
    """An operator's wish, the request at position ``request`` of ``correlation``, on its way: ``at`` is the position of
    what is waited for, the OA's answer or (``asked``) the device's."""

    request: int
    correlation: str
    at: int
    asked: bool = False


class Execution(msgspec.Struct, frozen=True):
    """The execution under way. ``at`` is the position of the request that is waited for; ``expires_at`` the
    approval's end; ``of`` how many reports it is, 0 while that is not known; ``deadline`` and ``tries`` belong to the
    doubt."""

    session_id: str
    proposal_id: str
    execution_id: str
    digest: str
    action: Action
    boot_id: str
    action_class: ActionClass
    expires_at: str
    step: Step = "prepare"
    at: int = 0
    of: int = 0
    committed_at: str = ""
    deadline: str = ""
    tries: int = 0


class HidState(msgspec.Struct, frozen=True):
    """All of it. ``mode`` is what the warden said last, or OBSERVE since the link tripped; ``armed_at`` is when the
    device was armed, ``heard_at`` when it was heard last since; ``ping`` and ``watch`` are the positions of what renews
    the lease now and of the timer that looks after it, where the line's owner does not; ``wishes``: position of an
    operator's wish to disarm -> its correlation; ``disarming``: position of a disarm request -> the wish that it
    answers (0: nobody's); ``over``: the wish of the one that has just ended; ``settled_at``: until then a report may be
    older than what the device was told; ``unwarded``: the warden is halted; ``lasting``: the process is a daemon, which
    alone has a line; ``lease_s``: so long the device that was heard last stays armed unheard."""

    session_id: str = ""
    mode: PlaMode = "OBSERVE"
    action_class: ActionClass = "feature_work"
    link: Link | None = None
    armed: bool = False
    arming: Arming | None = None
    armed_at: str = ""
    heard_at: str = ""
    ping: int = 0
    watch: int = 0
    wishes: dict[int, str] = {}
    disarming: dict[int, int] = {}
    over: int = 0
    settled_at: str = ""
    approvals: dict[str, PlaApproved] = {}
    execution: Execution | None = None
    unwarded: bool = False
    lasting: bool = False
    lease_s: float = EARLIER_LEASE_SECONDS
