"""Typing ends on request: whatever happens to the line, no key is pressed on the strength of anything that left the
host after the request, and none later than the lease (docs/design.md §16.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pmagent.contracts.control import EffectsPaused
from pmagent.contracts.effect import ActorHalted
from pmagent.contracts.hid import HidArmRequested, HidCommitRequested, HidDisarmRequested
from pmagent.contracts.pla import LEASE_SECONDS
from pmagent.contracts.pla_events import PlaDisarmRequested, PlaModeChanged, PlaSessionEnded
from pmagent.events.event import Event
from pmagent.replay.areas.pla.halting import FRAIL
from pmagent.replay.areas.pla.witness import Orders, decoded
from pmagent.replay.simulation.faults import Faults
from pmagent.replay.simulation.world import require

START_SECONDS: Final = 0.02
"""So long after the request is durable its performer has started."""
LINE_SECONDS: Final = 8.0
"""So long may what has left be on its way, and still count."""


class Ending:
    """Follows what becomes durable and what leaves the host. ``now``: true time in seconds; ``faults``: what befalls
    whatever is to end the typing."""

    def __init__(self, now: Callable[[], float], faults: Faults) -> None:
        self._now = now
        self.faults = faults
        self._ordered: set[str] = set()
        self._stopping: dict[str, tuple[float, str]] = {}
        """Execution -> since when it is to end, and the first who wanted that."""
        self._disarming: tuple[float, str] | None = None
        """Since when the device is to be disarmed, and the first who wanted that; None once it may be armed again."""
        self._left: dict[int, float] = {}
        """Number of a request -> when it left the host."""

    def durable(self, event: Event) -> None:
        """An event became durable."""
        data = event.data
        if isinstance(data, HidCommitRequested) and event.actor == "hid":
            self._ordered.add(data.execution_id)
        elif isinstance(data, HidArmRequested) and event.actor == "hid":
            self._disarming = None
        elif why := _stop_reason(event):
            for execution in self._ordered:
                self._stopping[execution] = self._now(), f"{why} at {event.position}"
            self._ordered.clear()
            self._disarming = self._disarming or (self._now(), f"{why} at {event.position}")

    def leaves(self, data: bytes) -> None:
        """The host writes."""
        for line in data.split(b"\n"):
            message = decoded(line)
            if message is not None and isinstance(message.get("n"), int):
                self._left[message["n"]] = self._now()

    def renewed(self, number: int) -> None:
        """The device's lease was renewed by this request."""
        if self._disarming is not None:
            since, why = self._disarming
            late = self._left[number] - since
            text = f"the device stays armed though {why}: a renewal of its lease left {late:.2f} s later"
            require(late < START_SECONDS, text)

    def pressed(self, execution: str, orders: Orders) -> None:
        """A key was pressed for ``execution``, on the strength of ``orders``."""
        since, why = self._stopping.get(execution, (0.0, ""))
        if not why:
            return
        for op, number in (("its order", orders.commit), ("a renewal of its lease", orders.lease)):
            late = self._left[number] - since
            require(late < START_SECONDS, f"the device still types though {why}: {op} left {late:.2f} s later")
        late = self._now() - since
        require(late < LEASE_SECONDS + LINE_SECONDS, f"the device still types {late:.2f} s after {why}")


def _stop_reason(event: Event) -> str:
    """Why ``event`` ends all typing; "" if it does not."""
    match event.data, event.kind, event.actor:
        case PlaModeChanged(mode=mode), "decision", "warden" if mode != "EXECUTE":
            return "the mode has fallen"
        case PlaSessionEnded(), "decision", "warden":
            return "the session has ended"
        case PlaDisarmRequested(), "fact", _:
            return "somebody disarms"
        case EffectsPaused(), "decision", "gate":
            return "effects are paused"
        case HidDisarmRequested(), "decision", "hid" | "warden":
            return "the device is to be disarmed"
        case ActorHalted(name=name), "decision", "engine" if name in FRAIL:
            return f"{name} is halted"
    return ""
