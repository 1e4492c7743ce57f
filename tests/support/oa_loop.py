"""The OA and the kernel watcher together, driven in log order as the engine does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pmagent.actors.kernel.actor import KernelWatcher
from pmagent.actors.oa.actor import Oa
from pmagent.actors.oa.state import OaActorState
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.kernel import KernelObserved
from pmagent.contracts.oa import (
    OaBootRequested,
    OaPermitRequested,
)
from pmagent.events.event import time_after
from tests.support.toys import START, Bench

Contents = dict[str, Any]
Observe = Callable[..., KernelObserved]
STARTED = DaemonStarted(version="0", python="3", surface="daemon")


class Loop(Bench):
    """Both actors on a bench; ``seconds`` is the time since the start."""

    def __init__(self) -> None:
        super().__init__([KernelWatcher(), Oa()])
        self.seconds = 0.0

    @property
    def now(self) -> str:
        """The time."""
        return time_after(START, self.seconds)

    def tell(self, *payloads: msgspec.Struct) -> list[Any]:
        """Take facts; the payloads of the decisions that follow."""
        return [each.data for payload in payloads for each in self.fact(payload).events if each.kind == "decision"]

    def last(self, kind: type[msgspec.Struct]) -> int:
        """Position of the last event with such a payload."""
        return self.of(kind)[-1].position

    @property
    def oa(self) -> OaActorState:
        """The OA's state."""
        state: OaActorState = self.engine.states["oa"]
        return state


def of(kind: type[Any], payloads: list[Any]) -> list[Any]:
    return [payload for payload in payloads if isinstance(payload, kind)]


def permit(action: str = "feature_work", **more: Any) -> OaPermitRequested:
    return OaPermitRequested(**({"action": action, "subject": "run-1", "holder": "orchestrator"} | more))


def boot(name: str = "oa-session-1") -> OaBootRequested:
    return OaBootRequested(session_id=name, workspace="/w")
