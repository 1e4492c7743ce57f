"""The document of ``pmagent status``, computed from the actors' states; pure but for the clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pmagent.actors.core.area import load
from pmagent.actors.core.engine import Engine
from pmagent.actors.core.gate import GateState
from pmagent.edges import EDGES
from pmagent.events.event import Tail
from pmagent.events.log import LogClock, ahead_seconds
from pmagent.jobs.registry import KINDS
from pmagent.projections.core.projection import Halt
from pmagent.service.noted import NotedStatus, code_stamp


def status_of(engine: Engine, log_id: str, tail: Tail, stale: Sequence[Halt] = (), *, running: bool) -> dict[str, Any]:
    """How things stand as of ``tail``: each area's part, permits, pause, open effects and jobs, halted actors,
    ``stale`` projections, the log's end. ``running``: a daemon says so, and not the log alone."""
    gate: GateState = engine.states["gate"]
    now = LogClock(tail.time).now()
    of_areas: dict[str, Any] = {}
    for edge in EDGES:
        of_areas |= load(edge.status)(engine) if edge.status else {}
    return {
        "running": running, "daemon": "running" if running else "none", **of_areas,
        "permits": sum(permit.uses_left > 0 and now < permit.expires_at for permit in gate.permits.values()),
        "paused": msgspec.to_builtins(gate.pause) if gate.pause is not None else None, "held": len(engine.effects.held),
        "open_effects": [
            {
                "position": event.position, "type": event.type, "since": event.time,
                "held": event.position in engine.effects.held,
            }
            for event in engine.effects.open.values()
        ],
        "jobs": [
            {
                "kind": kind.word, "id": job.id, "position": job.requested, "doing": job.doing,
                "what": job.what[:_WHAT_CHARS],
            }
            for kind in KINDS
            for job in kind.open_in(engine.states)
        ],
        "halted": sorted(engine.halted), "stale": [msgspec.to_builtins(halt) for halt in stale], "unwritten": None,
        "log": {
            "log_id": log_id, "position": tail.position, "sum": tail.sum, "time": tail.time or None,
            "ahead_s": ahead_seconds(tail.time),
        },
    }


class Standing:
    """The status of a live engine, computed anew when an event may have changed it, or a permit expires."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._until = ""
        self._document: dict[str, Any] = {}

    def of(self, engine: Engine, log_id: str, tail: Tail, stale: Sequence[Halt]) -> dict[str, Any]:
        """``status_of``; not to be changed."""
        key = engine, engine.sequencer.position, tail, ahead_seconds(tail.time), *stale
        if key != self._key or (self._until and LogClock(tail.time).now() >= self._until):
            now, permits = LogClock(tail.time).now(), engine.states["gate"].permits.values()
            self._until = min((one.expires_at for one in permits if one.expires_at > now), default="")
            self._document = status_of(engine, log_id, tail, stale, running=True)
            self._key = key
        return self._document


def note_of(engine: Engine, log_id: str, tail: Tail) -> bytes:
    """The status at an orderly end, for ``noted_status``."""
    gate: GateState = engine.states["gate"]
    ends = [permit.expires_at for permit in gate.permits.values() if permit.uses_left > 0]
    return msgspec.json.encode(NotedStatus(code_stamp(), status_of(engine, log_id, tail, running=False), ends))


_WHAT_CHARS: Final = 200
"""So much of what a job is for stands in the status."""
