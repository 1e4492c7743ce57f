"""The open work in a log: all that a start would go on with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pmagent.actors.core.area import load
from pmagent.actors.core.engine import Engine
from pmagent.actors.core.gate import GateState
from pmagent.clean import shorten
from pmagent.edges import EDGES
from pmagent.jobs.registry import KINDS

_WHAT_COLUMNS = 60


def open_work(engine: Engine, now: str) -> list[str]:
    """A line for each job, piece of an area's work and permit, and for each kind of effect, that is open at the log
    time ``now``."""
    return list(_open_work(engine, now))


def _open_work(engine: Engine, now: str) -> Iterator[str]:
    gate: GateState = engine.states["gate"]
    for kind in KINDS:
        for job in kind.open_in(engine.states):
            yield f"{kind.word} {job.id[:8]} ({shorten(job.what, _WHAT_COLUMNS)})"
    for edge in EDGES:
        yield from load(edge.open)(engine) if edge.open else ()
    live = [permit for permit in gate.permits.values() if permit.uses_left > 0 and now < permit.expires_at]
    for action, count in Counter(permit.action for permit in live).items():
        yield f"{count} permit{'s' if count > 1 else ''} for {shorten(action, _WHAT_COLUMNS)}"
    for type, count in Counter(event.type for event in engine.effects.open.values()).items():
        yield f"{count} open effect{'s' if count > 1 else ''} {type}"
