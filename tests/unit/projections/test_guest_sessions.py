"""Reports of agents' sessions: one that is taken up again goes on, or has a further part."""

from __future__ import annotations

from typing import Any

import pytest

from pmagent.contracts.guests import GuestSessionClosed, GuestSessionStarted
from pmagent.contracts.payload import encode, type_of
from pmagent.events.event import Event
from pmagent.projections.guests import sessions
from pmagent.projections.guests.sessions import GuestSessions, GuestsView, begun_at

TIME = "2026-11-26T12:00:00.000000Z"


class Folded:
    """The projection, and its documents as they were written last."""

    def __init__(self) -> None:
        self.projection = GuestSessions()
        self.state: GuestsView = self.projection.initial()
        self.written: dict[str, bytes] = {}
        self.position = 0

    def tell(self, payload: Any, name: str) -> None:
        """An event, and what becomes of the documents."""
        self.position += 1
        decided = isinstance(payload, GuestSessionClosed)
        event = Event(
            self.position, TIME, f"e{self.position}", "decision" if decided else "fact",
            "guests" if decided else "hook", type_of(payload), name, 0, payload, encode(payload),
        )  # fmt: skip
        before = self.state
        self.state = self.projection.evolve(before, event, "")
        self.written |= {
            path: content for path, part in self.projection.documents(self.state, before).items()
            if isinstance(content := part.content(), bytes)
        }  # fmt: skip
        self.state = self.projection.retire(self.state)

    def session(self, name: str) -> None:
        """A session begins and ends."""
        self.tell(GuestSessionStarted(session=name, harness="claude", mode="enforce"), name)
        closed: dict[str, Any] = {"unseen": 0, "asked": 0, "allowed": 0, "refused": 0, "unknown": 0}
        self.tell(GuestSessionClosed(session=name, proof="gated", **closed), name)


def test_a_session_that_is_taken_up_after_many_others_keeps_its_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "KEPT", 2)
    folded = Folded()
    folded.session("s")
    first = folded.written["guests/s.json"]
    folded.session("s")
    assert "guests/s~2.json" not in folded.written  # it is among those kept
    kept = folded.written["guests/s.json"]
    assert kept != first
    for name in ("a", "b", "c"):
        folded.session(name)
    assert begun_at(folded.state, "s") == 1
    folded.session("s")
    assert folded.written["guests/s.json"] == kept
    assert b'"part": 2' in folded.written["guests/s~2.json"]
    assert begun_at(folded.state, "s") == 1
    for name in ("d", "e", "f"):
        folded.session(name)
    folded.session("s")
    assert b'"part": 3' in folded.written["guests/s~3.json"]
    assert folded.state.closed["s"].since == 1


def test_only_so_many_are_known_that_were_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "KEPT", 1)
    monkeypatch.setattr(sessions, "EARLIER", 2)
    folded = Folded()
    for name in ("a", "b", "c", "d"):
        folded.session(name)
    assert list(folded.state.earlier) == ["b", "c"]
    assert begun_at(folded.state, "a") == 1
