"""The intruder: has the hostile actor forge, and gets facts into the log that only others may report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_args

import msgspec

from pmagent.contracts.hid import HidEnded
from pmagent.contracts.pla import TypeText, digest
from pmagent.contracts.pla_events import PlaApproved, PlaProposed
from pmagent.events.event import time_after
from pmagent.replay.areas.pla.device import DEVICE_ID
from pmagent.replay.areas.pla.forger import ForgeryAsked, How
from pmagent.replay.areas.pla.operators import Operators
from pmagent.replay.simulation.faults import Faults
from pmagent.replay.simulation.machine import Machine
from pmagent.replay.simulation.world import World

INTRUSIONS: Final = {
    "intruder: asks for an execution": "execution",
    "intruder: forges an approval": "approval",
    "intruder: hands over other bytes": "prepare",
    "intruder: orders": "commit",
    "intruder: orders with a permit": "permit",
    "intruder: arms": "arm",
}
"""Fault -> how."""

assert set(INTRUSIONS.values()) == set(get_args(How))


class Intruder:
    """``operators`` see what is under way, which is what forgeries are about; ``demand`` brings them to the actor."""

    def __init__(
        self, world: World, machine: Machine, faults: Faults, operators: Operators,
        demand: Callable[[msgspec.Struct], None],
    ) -> None:  # fmt: skip
        self._world = world
        self._machine = machine
        self._random = world.chance.stream("pla: intruder")
        self._faults = faults
        self._operators = operators
        self._demand = demand
        self._forged = 0

    def acts(self) -> None:
        """It may be up to something."""
        for fault, how in INTRUSIONS.items():
            if self._faults.strike(fault):
                self._demand(self._forgery(how))
        if self._faults.strike("intruder: forges a fact"):
            self._forge_fact()

    def _forgery(self, how: str) -> ForgeryAsked:
        """About what is under way, as far as something is."""
        view, random = self._operators.view, self._random
        mine = TypeText(text="rm -rf /\n")
        proposed: PlaProposed | None = view.open.data if view.open is not None else None
        executing = view.executing
        known = executing or proposed
        position, approval = random.choice(view.approvals[-3:]) if view.approvals else (0, None)
        whole = known is not None and random.random() < 0.5
        return ForgeryAsked(
            how=how, session_id=view.session_id, device_id=DEVICE_ID,  # type: ignore[arg-type]
            boot_id=view.linked.boot_id if view.linked is not None else "0" * 16,
            proposal_id=known.proposal_id if known is not None else "prop-of-nobody",
            execution_id=executing.execution_id if executing and random.random() < 0.5 else "exec-of-the-intruder",
            digest=known.digest if known is not None and whole else digest(mine),
            action=known.action if known is not None and whole else mine, permit=random.randrange(1, 60),
            approval=approval.request if approval is not None else position,
        )  # fmt: skip

    def _forge_fact(self) -> None:
        """Somebody gets a fact into the log that only an actor may decide, or only a performer bring."""
        view, machine = self._operators.view, self._machine
        known = view.open.data if view.open is not None else view.executing
        if known is None or not machine.up:
            return
        forged = self._random.choice((
            PlaApproved(
                request=1, session_id=known.session_id, proposal_id=known.proposal_id, digest=known.digest,
                operator_id="eve", channel="cli", expires_at=time_after(self._world.now(), 60.0), executes=True,
            ),
            HidEnded(request=1, boot_id="0" * 16, execution_id="exec-of-nobody", state="DONE", done=1, of=1),
        ))  # fmt: skip
        self._forged += 1
        machine.guard(machine.append, forged, f"forged:{self._forged}", self._random.choice(("warden", "hid", "eve")))
