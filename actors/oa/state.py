"""The OA's state: the kernel as last observed, who waits for a reading, sessions, live permits;
pure."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.actors.core.engine import Engine
from pmagent.actors.kernel.mode import Expected
from pmagent.contracts.kernel import Mode, Reason
from pmagent.contracts.oa import OaPermitRequested

WAITING_MAX = 256
"""So many requests wait for readings at once; a further one is refused at once."""

SESSIONS_MAX = 32
"""So many sessions are open at once; a further one ends the oldest."""

PERMITS_MAX = 1024
"""So many permits are live at once; a further request is refused."""


class Standing(msgspec.Struct, frozen=True):
    """The kernel as the last observation shows it. ``observed`` is that event's position."""

    mode: Mode
    reasons: list[Reason]
    phase: str
    branch: str
    observed: int
    complete: bool


class Waiting(msgspec.Struct, frozen=True):
    """A boot or snapshot request at position ``request`` that a reading will answer. ``read``: position of
    the reading's request, 0 while none has been made; the session's id and workspace are a boot's."""

    request: int
    boot: bool
    read: int = 0
    session_id: str = ""
    workspace: str = ""


class WaitingPermit(msgspec.Struct, frozen=True):
    """A permit request that came after a start and before its first observation; ``correlation`` is the request's."""

    request: int
    asked: OaPermitRequested
    correlation: str


class Session(msgspec.Struct, frozen=True):
    """An open session: when and in which mode it booted, the mode it knows of now, and the correlation of its boot."""

    session_id: str
    booted_at: str
    boot_mode: Mode
    current_mode: Mode
    correlation: str


class Permit(msgspec.Struct, frozen=True):
    """A live permit. Its uses are counted by the engine's gate, which alone sees them. ``correlation`` is that of the
    run that it was granted to."""

    action: str
    subject: str
    expires_at: str
    correlation: str
    holder: str = ""


class OaActorState(msgspec.Struct, frozen=True):
    """All of it. ``standing`` is None until an observation has come since the last start of an engine;
    ``reads`` are the positions of readings that are under way; ``unwatched``: the kernel watcher is halted, so nobody
    would notice a worse mode."""

    standing: Standing | None = None
    reads: list[int] = []
    waiting: list[Waiting] = []
    waiting_permits: list[WaitingPermit] = []
    sessions: list[Session] = []
    permits: dict[int, Permit] = {}
    unwatched: bool = False
    expected: Expected = Expected()


def status(engine: Engine) -> dict[str, Any]:
    """The sessions that are open."""
    state: OaActorState = engine.states["oa"]
    return {"sessions": [msgspec.to_builtins(session) for session in state.sessions]}
