"""The guests' actor: verdicts, approvals, and the one end of each call."""

from __future__ import annotations

from typing import Any

import msgspec

from pmagent.actors.guests.state import UNREAD
from pmagent.contracts.clock import TimerFired
from pmagent.contracts.daemon import DaemonStarted
from pmagent.contracts.guest_calls import Rule
from pmagent.contracts.guests import (
    GuestAnswerRefused,
    GuestApprovalAsked,
    GuestApprovalExpired,
    GuestApprovalGiven,
    GuestApprovalRejected,
    GuestApprovalUsed,
    GuestCallClosed,
    GuestCallDecided,
    GuestEndUnmatched,
    GuestPolicyEditAccepted,
    GuestPolicyEditRefused,
    GuestPolicyEditRequested,
    GuestPolicyRead,
    GuestSessionClosed,
    GuestSessionEnded,
    GuestWaitEnded,
)
from tests.support.cases import each
from tests.support.guests_alone import Alone, policy


def of(decisions: list[Any], cls: type[Any]) -> list[Any]:
    """Those of this type."""
    return [one for one in decisions if isinstance(one, cls)]


def answer(decisions: list[Any]) -> str:
    """The answer to a call."""
    decided, = of(decisions, GuestCallDecided)
    return str(decided.answer)


def test_rules_decide_and_what_no_rule_speaks_of_waits_for_an_operator() -> None:
    alone = Alone()
    alone.start()
    assert [answer(alone.ask(line)[1]) for line in ("ls x", "rm x", "make x")] == ["allow", "deny", "ask"]
    assert [call.waits > 0 for call in alone.state.sessions["s"].calls.values()] == [False, True]


def test_an_approval_lets_one_identical_call_through_once() -> None:
    alone = Alone()
    first, decided = alone.ask("make x")
    asked, = of(decided, GuestApprovalAsked)
    assert (asked.approval, asked.needed) == (first, 1)
    alone.tell(GuestWaitEnded(session="s", call_asked=first, why="late"))
    given, = of(alone.answer(first), GuestApprovalGiven)
    assert given.given == given.needed == 1
    for other in ({"line": "make y"}, {"line": "make x", "agent": "sub"}, {"line": "make x", "session": "other"}):
        assert answer(alone.ask(**other)[1]) == "ask"
    retry, passed = alone.ask("make x")
    assert answer(passed) == "allow"
    assert of(passed, GuestApprovalUsed) == [GuestApprovalUsed(approval=first, call_asked=retry)]
    assert answer(alone.ask("make x")[1]) == "ask"


def test_an_approval_that_comes_while_the_call_waits_lets_that_one_pass() -> None:
    alone = Alone()
    first, _ = alone.ask("make x", call="a")
    alone.ask("make x", call="b")
    used, = of(alone.answer(first), GuestApprovalUsed)
    assert used.call_asked == first
    assert of(alone.end("a"), GuestCallClosed)[0].end == "ended"
    assert alone.state.approvals == {}


def test_a_rejection_ends_the_calls_that_wait_and_takes_back_what_was_not_used() -> None:
    alone = Alone()
    first, _ = alone.ask("make x")
    rejected = alone.answer(first, decision="reject", note="no")
    assert of(rejected, GuestApprovalRejected)
    assert of(rejected, GuestCallClosed)[0].end == "refused"
    second, _ = alone.ask("make x")
    alone.tell(GuestWaitEnded(session="s", call_asked=second, why="gone"))
    alone.answer(second)
    alone.answer(second, decision="reject")
    assert answer(alone.ask("make x")[1]) == "ask"


@each("fields, code", [
    ({"digest": "0" * 64}, "digest"), ({"asking": "s"}, "self"), ({"approval": 1}, "unknown"), ({"late": 4000}, "over"),
    ({"rule": Rule(id="r", match="Bash(make *)", answer="allow")}, "rule"),
    ({"rule": Rule(id="r", match="Bash(make *)", answer="deny", expires="2026-11-26T13:00:00Z")}, "rule"),
])  # fmt: skip
def test_an_answer_counts_for_nothing(fields: dict[str, Any], code: str) -> None:
    alone = Alone()
    first, _ = alone.ask("make x")
    alone.wait(fields.pop("late", 0.0))
    refused, = alone.answer(fields.pop("approval", first), **fields)
    assert isinstance(refused, GuestAnswerRefused)
    assert refused.code == code
    assert not any(one.operators for one in alone.state.approvals.values())


def test_two_operators_who_prove_themselves_are_two() -> None:
    alone = Alone()
    first, _ = alone.ask("deploy x")
    unproven, = alone.answer(first)
    half, = alone.answer(first, proof="secret")
    twice, = alone.answer(first, proof="secret")
    assert (unproven.code, half.given, twice.code) == ("unproven", 1, "twice")
    assert of(alone.answer(first, "grace", proof="console"), GuestApprovalUsed)
    again, = alone.answer(first, "grace", proof="console")
    assert again.code == "unknown"


def test_approvals_expire_and_then_let_nothing_through() -> None:
    alone = Alone()
    first, _ = alone.ask("make x")
    alone.tell(GuestWaitEnded(session="s", call_asked=first, why="late"))
    alone.answer(first)
    alone.wait(601)
    assert answer(alone.ask("make x")[1]) == "ask"
    expired = of(alone.tell(TimerFired(request=1, name=f"guests.approval:{first}"), "clock"), GuestApprovalExpired)
    assert [(one.approval, one.given) for one in expired] == [(first, 1)]


def test_a_rule_that_an_operator_gave_holds_in_its_session_until_it_expires() -> None:
    alone = Alone()
    first, _ = alone.ask("make x")
    rule = Rule(id="r", match="Bash(make *)", answer="allow", expires="2026-11-26T12:30:00.000000Z")
    alone.answer(first, rule=rule)
    assert answer(alone.ask("make y")[1]) == "allow"
    assert answer(alone.ask("rm y")[1]) == "deny"
    assert answer(alone.ask("make y", session="other")[1]) == "ask"
    alone.wait(1801)
    assert answer(alone.ask("make z")[1]) == "ask"


def test_a_rule_with_a_bound_lets_so_many_calls_through_and_is_gone() -> None:
    alone = Alone()
    first, _ = alone.ask("make x")
    rule = Rule(id="r", match="Bash(make *)", answer="allow", expires="2026-11-26T12:30:00.000000Z")
    alone.answer(first, rule=rule, rule_uses=2)
    assert [answer(alone.ask(line)[1]) for line in ("make a", "rm b", "ls c", "make d")] == [
        "allow", "deny", "allow", "allow",
    ]  # fmt: skip
    alone.tell(GuestPolicyRead(policy=alone.state.policy))
    last, decided = alone.ask("make e")
    assert answer(decided) == "ask"
    assert not alone.state.sessions["s"].rules
    alone.answer(last, rule=msgspec.structs.replace(rule, id="r2"))
    assert [answer(alone.ask("make f")[1]) for _ in range(3)] == ["allow"] * 3, "another rule has no bound of it"


def test_what_changed_since_the_approval_counts() -> None:
    """A stricter policy, and a mode that permits nothing."""
    alone = Alone()
    first, _ = alone.ask("make x")
    alone.tell(GuestWaitEnded(session="s", call_asked=first, why="late"))
    alone.answer(first)
    alone.tell(GuestPolicyRead(policy=policy(("Bash(make *)", 2))))
    assert answer(alone.ask("make x")[1]) == "ask"
    alone.tell(GuestPolicyRead(policy=policy(("Bash(make *)", "deny"))))
    assert answer(alone.ask("make x")[1]) == "deny"


def test_observe_holds_nothing_up_and_asks_nobody() -> None:
    alone = Alone()
    alone.start()
    position, decided = alone.ask("rm x", call="a", mode="observe")
    assert answer(decided) == "deny"
    assert not of(alone.ask("make x", call="b", mode="observe")[1], GuestApprovalAsked)
    assert of(alone.end("a"), GuestCallClosed) == [GuestCallClosed(call_asked=position, end="ended")]
    closed = of(alone.tell(GuestSessionEnded(session="s", transcript="read")), GuestSessionClosed)[0]
    assert (closed.proof, closed.unknown) == ("not_proven", 1)


def test_what_the_spool_brings_in_mode_enforce_was_refused() -> None:
    assert answer(Alone().ask("ls x", source="spool", seen="2026-11-26T11:00:00Z")[1]) == "deny"


def test_what_is_imported_is_not_judged() -> None:
    alone = Alone()
    assert alone.ask("rm x", source="import", mode="observe")[1] == []
    assert alone.state.sessions == {}


def test_an_end_of_what_was_not_let_through_is_told() -> None:
    alone = Alone()
    alone.start()
    alone.ask("rm x", call="a")
    assert of(alone.end("a"), GuestEndUnmatched)[0].call == "a"
    closed = of(alone.tell(GuestSessionEnded(session="s", transcript="read")), GuestSessionClosed)[0]
    assert (closed.proof, closed.unseen) == ("in_part", 1)


@each("start, ended, proof", [
    (True, {"transcript": "read"}, "gated"), (True, {"transcript": "read", "unseen": 2}, "in_part"),
    (True, {"transcript": "none"}, "not_proven"), (False, {"transcript": "read"}, "not_proven"),
])  # fmt: skip
def test_how_far_a_session_is_proven(start: bool, ended: dict[str, Any], proof: str) -> None:
    alone = Alone()
    if start:
        alone.start()
    alone.ask("ls x", call="a")
    decisions = alone.tell(GuestSessionEnded(session="s", **ended))
    assert [one.end for one in of(decisions, GuestCallClosed)] == ["unknown"]
    closed, = of(decisions, GuestSessionClosed)
    assert (closed.proof, closed.asked, closed.allowed, closed.unknown) == (proof, 1, 1, 1)
    assert alone.state.sessions == {}


def test_a_start_ends_the_waiting_and_a_call_asked_again_leaves_the_first_unknown() -> None:
    alone = Alone()
    waiting, _ = alone.ask("make x", call="a")
    allowed, _ = alone.ask("ls x", call="b")
    ended = of(alone.tell(DaemonStarted(version="", python="", surface="daemon"), "daemon"), GuestCallClosed)
    assert [(one.call_asked, one.end) for one in ended] == [(waiting, "expired")]
    again = of(alone.ask("ls x", call="b")[1], GuestCallClosed)
    assert [(one.call_asked, one.end) for one in again] == [(allowed, "unknown")]


def test_sessions_that_are_silent_for_a_day_are_closed() -> None:
    alone = Alone()
    alone.start("old")
    alone.wait(86_401)
    closed = of(alone.ask("ls x", session="new")[1], GuestSessionClosed)
    assert [(one.session, one.proof) for one in closed] == [("old", "not_proven")]
    assert list(alone.state.sessions) == ["new"]


def test_without_a_policy_nothing_passes() -> None:
    unread = Alone(UNREAD)
    assert [answer(unread.ask(line)[1]) for line in ("make x", "ls x")] == ["deny", "ask"]


@each("fields, code", [
    ({"asking": "s"}, "self"), ({"found": "c" * 64}, "changed"), ({"found": ""}, "changed"),
    ({"sha256": "a" * 64}, "same"),
])  # fmt: skip
def test_a_policys_new_text_counts_for_nothing(fields: dict[str, Any], code: str) -> None:
    refused, = Alone().tell(edit(**fields), "operator")
    assert isinstance(refused, GuestPolicyEditRefused)
    assert refused.code == code


def test_a_policys_new_text_is_accepted_in_place_of_the_file_that_was_shown() -> None:
    accepted, = Alone().tell(edit(), "operator")
    assert isinstance(accepted, GuestPolicyEditAccepted)
    assert (accepted.sha256, accepted.before, accepted.operator_id) == ("b" * 64, "a" * 64, "ada")


def edit(**fields: Any) -> GuestPolicyEditRequested:
    """An operator's wish for another text."""
    given: dict[str, Any] = {"before": "a" * 64, "found": "a" * 64, "sha256": "b" * 64, **fields}
    return GuestPolicyEditRequested(layer="project", operator_id="ada", channel="console", **given)


def test_a_gated_call_is_refused_before_the_start_of_its_session_was_heard() -> None:
    alone = Alone()
    assert answer(alone.ask("ls x")[1]) == "allow"  # as it was recorded by who asked for no start
    refused, = of(alone.ask("ls x", session="new", needs_start=True)[1], GuestCallDecided)
    assert (refused.answer, "resume" in refused.why) == ("deny", True)
    assert answer(alone.ask("ls x", session="new", needs_start=True, mode="observe")[1]) == "allow"
    alone.start("new")
    assert answer(alone.ask("ls x", session="new", needs_start=True)[1]) == "allow"
