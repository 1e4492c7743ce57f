"""Every actor there is, in the order in which they take an event (docs/design.md §3.2). The gate comes before them."""

from __future__ import annotations

from actors.actor import AnyActor
from actors.audit.actor import Auditor
from actors.checks.actor import Checker
from actors.kernel.actor import KernelWatcher
from actors.model.actor import Gateway
from actors.oa.actor import Oa
from actors.oa.context import ContextKeeper
from actors.oa.reasoning.actor import Reasoner
from actors.orchestra.coordinator import Coordinator
from actors.orchestra.orchestrator import Orchestrator
from actors.orchestra.worker import Worker
from actors.pla.brain.actor import Brain
from actors.pla.hid.actor import HidLink
from actors.pla.warden.actor import Warden


def all_actors() -> list[AnyActor]:
    """One of each. The kernel watcher decides on a reading before the OA does."""
    return [
        KernelWatcher(), Oa(), ContextKeeper(), Reasoner(), Gateway(), Checker(), Orchestrator(), Coordinator(),
        Worker(), Auditor(), Brain(), Warden(), HidLink(),
    ]  # fmt: skip
