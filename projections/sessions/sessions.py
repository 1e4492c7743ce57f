"""Projection: the documents of PLA sessions, ``sessions/<session_id>.jsonl``, its violations beside it, and
``jobs/<session_id>.json`` (docs/design.md §16.8).

Statements, refusals and violations outside of sessions are reported too, in a log of their own
(``outside-<position>``, the position of the first of it). Events after the end of a session change nothing.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pmagent.contracts.content import Content, Growing
from pmagent.contracts.effect import ActorHalted, RequestRefused
from pmagent.contracts.hid import HidArmed, HidDisarmed, HidLost
from pmagent.contracts.pla_events import (
    PlaArmRequested,
    PlaDecisionRequested,
    PlaDisarmRequested,
    PlaEndRequested,
    PlaModeRequested,
    PlaObserveRequested,
    PlaProposalRequested,
    PlaSessionBegan,
)
from pmagent.events.event import Event, LogCreated
from pmagent.projections.core.projection import Part
from pmagent.projections.sessions.entries import WRITERS, is_forged
from pmagent.projections.sessions.fold import evolved
from pmagent.projections.sessions.job import job
from pmagent.projections.sessions.paths import job_path, log_path, usable, violations_path
from pmagent.projections.views.sessions import Session

SESSIONS_KEPT: Final = 16
"""So many ended sessions stay in the state, the newest: after a crash it is seen whether their documents are there."""
ENTRIES_KEPT: Final = 20_000
"""Fewer stay if they have more entries than this together; the newest always stays."""
OUTSIDE_ENTRIES: Final = 1_000
"""After so many a new log is begun for what there is outside of sessions."""
ASKED_KEPT: Final = 32
"""So many requests are remembered with who asked, until they are answered."""

_REQUESTS: Final = (
    PlaModeRequested, PlaEndRequested, PlaDecisionRequested, PlaArmRequested, PlaDisarmRequested,
    PlaProposalRequested, PlaObserveRequested,
)  # fmt: skip
_ALSO_OUTSIDE: Final = tuple(WRITERS)
"""Events that have an entry also while no session stands."""


class SessionsView(msgspec.Struct, frozen=True):
    """The log's id, and sessions by id: those that stand, and the newest that have ended (``ended``, in the order of
    their ends). ``standing`` began last; ``outside`` takes what belongs to none; ``asked``: position of a request ->
    who asked."""

    log_id: str = ""
    sessions: dict[str, Session] = {}
    ended: list[str] = []
    standing: str = ""
    outside: str = ""
    asked: dict[int, str] = {}


class Sessions:
    """The documents of all sessions as a function of a log prefix. ``kept`` and ``entries`` bound the ended sessions
    that stay in the state."""

    def __init__(self, kept: int = SESSIONS_KEPT, entries: int = ENTRIES_KEPT) -> None:
        self._kept = kept
        self._entries = entries

    name = "pla_sessions"
    hears: frozenset[type[msgspec.Struct]] = frozenset(
        (LogCreated, *WRITERS, *_REQUESTS, HidArmed, HidDisarmed, HidLost, ActorHalted, RequestRefused)
    )

    def initial(self) -> SessionsView:
        """No session."""
        return SessionsView()

    def evolve(self, state: SessionsView, event: Event, sum: str) -> SessionsView:
        """The view after ``event``, whose line's sum is ``sum``."""
        data = event.data
        if isinstance(data, LogCreated):
            return SessionsView(data.log_id)
        if isinstance(data, _REQUESTS):
            return _remembered(state, event)
        known = _begun(state, event) or _concerned(state, event)
        if known is None:
            return state
        who = state.asked.get(getattr(data, "request", event.causation), "")
        after = evolved(known, event, sum, state.log_id, who)
        return state if after is known else _with(state, after)

    def retire(self, state: SessionsView) -> SessionsView:
        """Without the oldest of the sessions that have ended."""
        kept, entries = 0, 0
        for name in reversed(state.ended):
            entries += state.sessions[name].log.entries
            if kept and (kept >= self._kept or entries > self._entries):
                break
            kept += 1
        if kept == len(state.ended):
            return state
        gone = set(state.ended[: len(state.ended) - kept])
        left = {name: one for name, one in state.sessions.items() if name not in gone}
        return msgspec.structs.replace(state, sessions=left, ended=state.ended[len(state.ended) - kept :])

    def documents(self, state: SessionsView, since: SessionsView | None) -> dict[str, Part]:
        """Of sessions that have changed, their documents."""
        found: dict[str, Part] = {}
        for name, session in state.sessions.items():
            before = since.sessions.get(name) if since is not None else None
            if before is not session:
                found |= _documents(session)
        return found


def _remembered(state: SessionsView, event: Event) -> SessionsView:
    """With who asked for something, and without the oldest of those."""
    data: Any = event.data
    who = data.requested_by if isinstance(data, (PlaProposalRequested, PlaObserveRequested)) else data.operator_id
    asked = {**state.asked, event.position: who}
    while len(asked) > ASKED_KEPT:
        del asked[next(iter(asked))]
    return msgspec.structs.replace(state, asked=asked)


def _begun(state: SessionsView, event: Event) -> Session | None:
    """The session that the event begins."""
    data = event.data
    if not isinstance(data, PlaSessionBegan) or is_forged(event):
        return None
    if data.session_id in state.sessions or not usable(data.session_id):
        return None
    return Session(data.session_id, event.time)


def _concerned(state: SessionsView, event: Event) -> Session | None:
    """The session that an event belongs to: the one that it names, or that stands; what names one that does not stand
    is told outside of sessions, and so is what may happen there."""
    named = getattr(event.data, "session_id", "")
    found = state.sessions.get(named or event.correlation) or state.sessions.get("" if named else state.standing)
    if found is not None and not found.over:
        return found
    if not (named or isinstance(event.data, _ALSO_OUTSIDE)):
        return None
    outside = state.sessions.get(state.outside)
    if outside is not None and outside.log.entries < OUTSIDE_ENTRIES:
        return outside
    return Session(f"outside-{event.position}", event.time, state="running", outside=True)


def _with(state: SessionsView, after: Session) -> SessionsView:
    """The state with a session as it is now."""
    name = after.session_id
    standing, outside, closed = state.standing, state.outside, []
    if after.outside and name != outside:
        outside, closed = name, [outside]
    elif name not in state.sessions:
        standing, outside, closed = name, "", [outside]
    if after.over:
        closed.append(name)
        standing = "" if name == standing else standing
    ended = [*state.ended, *(one for one in closed if one)]
    return SessionsView(state.log_id, {**state.sessions, name: after}, ended, standing, outside, state.asked)


def _documents(session: Session) -> dict[str, Part]:
    name = session.session_id
    found = {log_path(name): Part(_same, (session.log.content,), name)}
    if session.violations.entries:
        found[violations_path(name)] = Part(_same, (session.violations.content,), name)
    if not session.outside:
        found[job_path(name)] = Part(job, (session,), name)
    return found


def _same(content: Growing) -> Content:
    return content
