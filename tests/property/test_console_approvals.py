"""Two people, several tabs, double clicks, forms that were changed, time, modes and the stop switch, in any order: at
most one approval of a proposal is recorded, never by who asked for it or may only look, only of the bytes that the sent
form says were shown, in the mode that it says, before the proposal expired; and each form is told what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.actors.pla.warden import approvals as warden_approvals
from pmagent.console.pages.approvals.shown_state import unpacked
from pmagent.console.pages.views import approvals as views
from pmagent.contracts.pla_events import (
    PlaApproved,
    PlaDecisionRequested,
    PlaDisarmRequested,
    PlaModeChanged,
    PlaProposed,
)
from tests.support.approval_harness import ROLES, TEXTS, ApprovalHarness
from tests.support.effort import examples

PEOPLE = list(ROLES)
CHANGES = (
    "", "", "", "", "unread", "first", "digest", "mode", "seen", "nonce", "other", "address", "who",
)  # fmt: skip
"""Changes to a form before it is sent; mostly none."""

steps = st.lists(
    st.one_of(
        st.tuples(st.just("propose"), st.sampled_from(PEOPLE), st.sampled_from(TEXTS), st.sampled_from([5.0, 60.0])),
        st.tuples(st.just("open"), st.sampled_from(PEOPLE), st.sampled_from(["approve", "approve", "reject"])),
        st.tuples(st.just("send"), st.integers(0, 7), st.sampled_from(CHANGES), st.sampled_from(PEOPLE)),
        st.tuples(st.just("send"), st.integers(0, 7), st.just(""), st.just("bob")),
        st.tuples(st.just("mode"), st.sampled_from(["OBSERVE", "SUGGEST", "SUGGEST", "EXECUTE"])),
        st.tuples(st.sampled_from(["wait", "ready", "pause", "resume", "arm", "disarm"])),
    ),
    min_size=1, max_size=24,
)  # fmt: skip

Step = tuple[Any, ...]
Sent = tuple[str, dict[str, str], str]
"""The sender, the form, and the proposal whose address it went to."""


class Tab:
    """A form before somebody: whose proposal it is about, and what it sends."""

    def __init__(self, who: str, name: str, word: str, fields: dict[str, str]) -> None:
        self.who, self.name, self.word, self.fields = who, name, word, fields


class Life:
    """The events so far, and the forms that were sent."""

    def __init__(self, approvals: ApprovalHarness) -> None:
        self.approvals = approvals
        self.tabs: list[Tab] = []
        self.sent: dict[int, Sent] = {}
        self.stood: dict[int, tuple[str, str]] = {}
        """By the position of the decision's request: whether the device was armed, and effects paused, when it came."""
        approvals.begin()
        approvals.actors.link()
        approvals.actors.mode("SUGGEST")

    async def live(self, taken: list[Step]) -> None:
        """One step after the other; each keeps the laws."""
        for what, *given_ in taken:
            await getattr(self, f"_{what}")(*given_)
            self.check()

    async def _propose(self, who: str, text: str, seconds: float) -> None:
        self.approvals.propose(text, who, seconds)

    async def _mode(self, mode: str) -> None:
        self.approvals.actors.mode(mode)

    async def _wait(self) -> None:
        self.approvals.actors.advance(6.0)

    async def _ready(self) -> None:
        self.approvals.actors.mode("SUGGEST", "EXECUTE")
        await self._arm()

    async def _arm(self) -> None:
        if self.approvals.actors.warden.mode == "EXECUTE":
            self.approvals.actors.arm()

    async def _disarm(self) -> None:
        self.approvals.actors.tell(PlaDisarmRequested(operator_id="ada", channel="cli"))

    async def _pause(self) -> None:
        self.approvals.pause()

    async def _resume(self) -> None:
        self.approvals.resume()

    async def _open(self, who: str, word: str) -> None:
        """Somebody opens the form on what is open, as the page has it; who finds none has nothing to send."""
        waiting = self.approvals.actors.warden.open_proposals
        if not waiting:
            return
        name = waiting[0].proposed.proposal_id
        status, address = await self.approvals.request(who, "GET", f"/approvals/{name}", f"decide={word}")
        assert status == 303
        path, _, query = address.partition("?")
        status, _ = await self.approvals.request(who, "GET", path, query)
        assert status == 200
        card = self.approvals.shown["card"]
        if ROLES[who] != "approve" or (word == "approve" and card.barred):
            assert card.barred
            return
        fields = dict(card.fields(self.approvals.shown["nonce"]))
        assert fields["digest"] == waiting[0].proposed.digest
        fields |= {"read": "yes", "first": card.first, "reason": "no"}
        self.tabs.append(Tab(who, name, word, fields))

    async def _send(self, place: int, change: str, who: str) -> None:
        """A form is sent, as it is or changed, by who has it or by somebody else; twice, for people press twice."""
        if not self.tabs:
            return
        tab, other = self.tabs[place % len(self.tabs)], self.tabs[(place + 1) % len(self.tabs)]
        sender = who if change == "who" else tab.who
        fields, name = changed(tab.fields, other.fields, change), other.name if change == "address" else tab.name
        before, stood = len(self.approvals.actors.of(PlaDecisionRequested)), self.approvals.stands()
        answers = [
            await self.approvals.request(sender, "POST", f"/approvals/{name}/{tab.word}", form=fields) for _ in range(2)
        ]
        new = self.approvals.actors.of(PlaDecisionRequested)[before:]
        assert len(new) <= 1, "twice is once"
        for event in new:
            self.sent[event.position] = (sender, fields, name)
            self.stood[event.position] = stood
            assert (event.data.operator_id, event.data.channel) == (sender, "console")
        assert answers[0] == answers[1]
        self._told((sender, fields, name), tab.word, answers[0], whole=change not in ("unread", "first", "seen"))

    def _told(self, sent: Sent, word: str, answer: tuple[int, str], *, whole: bool) -> None:
        """A person who is sent on has decided; others are told why not. A form that lacks something (not ``whole``) is
        refused also behind one that did not."""
        status, address = answer
        mine = {at for at, other in self.sent.items() if same(other, sent)}
        kind = "pla.approved" if word == "approve" else "pla.rejected"
        taken = [event for event in self.approvals.actors.history if event.type == kind and event.data.request in mine]
        if status == 303:
            assert address == f"/approvals/{sent[2]}"
            assert len(taken) == 1
            return
        assert taken == [] or not whole
        assert status in (400, 403, 409, 422)
        if status in (403, 409) and ROLES[sent[0]] == "approve":
            assert self.approvals.shown["reasons"]

    def check(self) -> None:
        """The laws of approvals, of all that has happened so far."""
        history = self.approvals.actors.history
        proposals = {event.data.proposal_id: event.data for event in history if isinstance(event.data, PlaProposed)}
        seen: set[str] = set()
        mode = "OBSERVE"
        for event in history:
            if isinstance(event.data, PlaModeChanged):
                mode = event.data.mode
            if not isinstance(event.data, PlaApproved):
                continue
            approved, proposed = event.data, proposals[event.data.proposal_id]
            assert approved.proposal_id not in seen, "approved once"
            seen.add(approved.proposal_id)
            who, fields, _ = self.sent[approved.request]
            assert who == approved.operator_id != proposed.requested_by
            assert ROLES[who] == "approve"
            shown = unpacked(fields["seen"])
            assert approved.digest == proposed.digest == fields["digest"] == shown.digest
            assert shown.text == msgspec.to_builtins(proposed.action)["text"]
            assert fields["mode"] == shown.mode == mode
            assert (shown.armed, shown.paused) == self.stood[approved.request]
            assert event.time < proposed.expires_at
            assert fields["read"] == "yes"
            if "\n" in shown.text:
                assert fields["first"] == approved.digest[:6]


def same(one: Sent, other: Sent) -> bool:
    """Whether two forms are one request: from the same person, about the same, with the same nonce."""
    return (one[0], one[2]) == (other[0], other[2]) and all(
        one[1][name] == other[1][name] for name in ("nonce", "digest", "mode")
    )


def changed(fields: dict[str, str], other: dict[str, str], change: str) -> dict[str, str]:
    """A form that somebody has tampered with."""
    match change:
        case "unread":
            return {**fields, "read": "", "reason": ""}
        case "first":
            return {**fields, "first": "ffffff" if fields["first"] != "ffffff" else "000000"}
        case "digest":
            return {**fields, "digest": "0" * 64}
        case "mode":
            return {**fields, "mode": "EXECUTE" if fields["mode"] == "SUGGEST" else "SUGGEST"}
        case "seen":
            return {**fields, "seen": fields["seen"][:-8]}
        case "nonce":
            return {**fields, "nonce": "0" * 32}
        case "other":
            return {**fields, "seen": other["seen"], "digest": other["digest"], "mode": other["mode"]}
    return fields


@pytest.fixture(scope="module")
def approvals() -> ApprovalHarness:
    """The pages, made once."""
    return ApprovalHarness()


@given(taken=steps)
@settings(max_examples=examples(150), deadline=None)
def test_whatever_is_sent_an_approval_is_one_persons_for_what_they_saw_once(
    approvals: ApprovalHarness, taken: list[Step]
) -> None:
    anyio.run(Life(approvals).live, taken)


USUAL: list[Step] = [
    ("propose", "ada", TEXTS[1], 60.0), ("open", "bob", "approve"), ("open", "cleo", "approve"), ("send", 0, "", "bob"),
    ("send", 1, "", "cleo"), ("propose", "bob", TEXTS[0], 60.0), ("open", "cleo", "approve"), ("send", 2, "who", "bob"),
    ("send", 2, "", "cleo"), ("propose", "ada", TEXTS[2], 60.0), ("open", "bob", "approve"), ("ready",),
    ("open", "bob", "approve"), ("send", 3, "", "bob"), ("send", 4, "", "bob"),
]  # fmt: skip
"""Two approve; who asked takes the form of another; the mode rises while one looks."""


def test_the_usual_is_approved(approvals: ApprovalHarness) -> None:
    life = Life(approvals)
    anyio.run(life.live, USUAL)
    assert [event.data.operator_id for event in approvals.actors.of(PlaApproved)] == ["bob", "cleo", "bob"]
    assert [event.data.executes for event in approvals.actors.of(PlaApproved)] == [False, False, True]


TRYING: list[Step] = [
    *USUAL, ("mode", "SUGGEST"), ("propose", "ada", TEXTS[1], 60.0), ("open", "bob", "approve"),
    ("send", 5, "who", "ada"), ("send", 5, "who", "eve"), ("send", 5, "unread", "bob"), ("mode", "OBSERVE"), ("ready",),
    ("propose", "ada", TEXTS[0], 60.0), ("disarm",), ("open", "bob", "approve"), ("arm",), ("send", 6, "", "bob"),
]  # fmt: skip
"""And what is refused: forms of others and of who may only look, without the second step, of a device armed since."""


def test_what_tries_the_laws_keeps_them(approvals: ApprovalHarness) -> None:
    anyio.run(Life(approvals).live, TRYING)


@pytest.mark.parametrize(
    "broken",
    [
        lambda patch: patch.setattr(warden_approvals, "_approving", lambda *_: None),
        lambda patch: patch.setattr(views, "wanting", lambda *_: {}),
        lambda patch: patch.setattr(views, "request_id", lambda said, *_: f"pla.decide-{id(said)}"),
        lambda patch: patch.setattr(views, "request_id", lambda said, *_: f"pla.decide-{said.verdict}"),
        lambda patch: patch.setattr(views, "_approver", lambda request: request.state.visitor),
        lambda patch: patch.setattr(views, "_not_as_shown", lambda *_: None),
    ],
    ids=["the_warden_agrees", "no_second_step", "twice_is_twice", "others_hide", "anybody_may", "armed_meanwhile"],
)
def test_the_laws_catch_what_is_broken(
    approvals: ApprovalHarness, monkeypatch: pytest.MonkeyPatch, broken: Callable[[pytest.MonkeyPatch], Any]
) -> None:
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        anyio.run(Life(approvals).live, TRYING)
