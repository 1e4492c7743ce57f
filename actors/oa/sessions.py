"""Sessions: boot, limit, drift; pure (docs/design.md §12.4)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from pmagent.actors.oa.policy import interpret
from pmagent.actors.oa.state import SESSIONS_MAX, OaActorState, Session, Standing
from pmagent.contracts.kernel import KernelModeDecided, Mode, Reason
from pmagent.contracts.oa import OaBootRefused, OaEscalated, OaSessionBooted, OaSessionEnded
from pmagent.contracts.payload import Correlated, Payload
from pmagent.events.event import Event

LIMIT = "limit"


def booted(
    state: OaActorState, request: int, session_id: str, workspace: str, now: Standing
) -> Iterator[Payload | Correlated]:
    """The answer to a boot request on a fresh observation; ends the oldest session if there are too many."""
    if now.mode == "BLOCKED":
        yield refused(request, session_id, now.reasons)
        return
    if any(session.session_id == session_id for session in state.sessions):
        taken = Reason(
            code="session_exists", mode=now.mode, text="a session with this id is open already",
            mend="boot again with a new session id",
        )
        yield OaBootRefused(request=request, session_id=session_id, mode=now.mode, reasons=[taken])
        return
    for session in state.sessions[: max(0, len(state.sessions) - SESSIONS_MAX + 1)]:
        yield Correlated(OaSessionEnded(session_id=session.session_id, reason=LIMIT), session.correlation)
    yield OaSessionBooted(
        request=request, session_id=session_id, workspace=workspace, mode=now.mode, phase=now.phase, branch=now.branch,
        interpretation=interpret(now.mode, now.reasons), reasons=now.reasons,
    )


def refused(request: int, session_id: str, reasons: list[Reason]) -> OaBootRefused:
    """No session: the kernel is BLOCKED, or could not be read, which counts as that."""
    return OaBootRefused(request=request, session_id=session_id, mode="BLOCKED", reasons=reasons)


def escalations(state: OaActorState, decided: KernelModeDecided) -> Iterator[Payload | Correlated]:
    """The escalations of a changed mode: the mode itself, and each session that it drifts from."""
    severity = "block" if decided.mode == "BLOCKED" else "warn"
    if decided.mode != "NORMAL":
        yield OaEscalated(kind=f"mode_{decided.mode.lower()}", severity=severity, reasons=decided.reasons)
    for session in state.sessions:
        if session.boot_mode != decided.mode:
            drift = OaEscalated(
                kind="mode_drift", severity=severity, session_id=session.session_id, boot_mode=session.boot_mode,
                current_mode=decided.mode,
            )
            yield Correlated(drift, session.correlation)


def opened(sessions: list[Session], event: Event, payload: OaSessionBooted) -> list[Session]:
    """The open sessions with the one that ``event`` booted."""
    return [*sessions, Session(payload.session_id, event.time, payload.mode, payload.mode, event.correlation)]


def closed(sessions: list[Session], session_id: str) -> list[Session]:
    """The open sessions without ``session_id``."""
    return [session for session in sessions if session.session_id != session_id]


def with_mode(sessions: list[Session], mode: Mode) -> list[Session]:
    """The open sessions, all knowing that the mode is ``mode`` now."""
    return [msgspec.structs.replace(session, current_mode=mode) for session in sessions]
