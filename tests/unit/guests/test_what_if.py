"""A rule, or another policy, tried on what a log holds, as far back as a page may look."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pmagent.contracts.guest_calls import Answer, Call, Command, Rule, Verdict
from pmagent.contracts.guests import GuestCallAsked, GuestCallDecided
from pmagent.events.event import Draft
from pmagent.guests import what_if
from pmagent.guests.what_if import compare, try_rule
from pmagent.workspace.layout import Layout
from tests.support.guests_alone import policy
from tests.support.logged import write_log

MAKE = Rule(id="session 1", match="Bash(make *)", answer="allow")
LONG_AGO = "2026-01-01T00:00:00.000000Z"


def logged(workspace: Path, *calls: tuple[str, Answer], imported: int = 0) -> None:
    """A log of calls with their answers; the last ``imported`` ones are imported, and were seen at an old time."""
    drafts = list[Draft]()
    for number, (line, answer) in enumerate(calls):
        facts = Call(harness="claude", session="s", tool="Bash", kind="shell", cwd="/w", root="/w",
                     commands=[Command(words=[*line.split()])])  # fmt: skip
        old = number >= len(calls) - imported
        asked = GuestCallAsked(
            session="s", call=str(number), facts=facts, digest="0" * 64, mode="observe" if old else "enforce",
            source="import" if old else "live", seen=f"2026-02-0{number % 9 + 1}T00:00:00.000000Z" if old else "",
        )  # fmt: skip
        position = len(drafts) + 2
        drafts.append(Draft("guest.call_asked", None, msgspec.json.encode(asked), f"a{number}", "hook", "s", 0, "fact"))
        if not old:
            verdict = Verdict(answer=answer, rules=["r"], policy="", reasons=[])
            decided = GuestCallDecided(request=position, answer=answer, verdict=verdict, mode="NORMAL")
            raw = msgspec.json.encode(decided)
            drafts.append(Draft("guest.call_decided", None, raw, f"d{number}", "guests", "s", position, "decision"))
    write_log(workspace, drafts)


def test_a_rule_is_held_against_live_and_imported_calls(tmp_path: Path) -> None:
    live: list[tuple[str, Answer]] = [("make a", "ask"), ("make b", "deny"), ("make mischief", "deny")]
    logged(tmp_path, *live, ("rm x", "deny"), ("make c", "ask"), ("make d", "ask"), imported=2)
    rules = policy(("Bash(make mischief *)", "deny"))
    found = try_rule(Layout(tmp_path).store, rules, MAKE, LONG_AGO)
    assert (found.calls, found.let, found.kept, found.whole) == (6, 4, 1, True)
    assert found.was == {"deny": 1, "ask": 1, "imported": 2}
    assert [one.what for one in found.first] == ["make b", "make a", "make d", "make c"]
    later = try_rule(Layout(tmp_path).store, rules, MAKE, "2026-02-06T00:00:00.000000Z")
    assert later.was == {"deny": 1, "ask": 1, "imported": 1}


def test_a_page_says_how_far_back_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logged(tmp_path, *((f"make {number}", "ask") for number in range(10)))
    monkeypatch.setattr(what_if, "BLOCK", 4)
    monkeypatch.setattr(what_if, "LOOK_SECONDS", 1e9)
    whole = try_rule(Layout(tmp_path).store, policy(), MAKE, LONG_AGO)
    assert (whole.let, whole.whole) == (10, True)
    monkeypatch.setattr(what_if, "LATEST", 8)
    part = try_rule(Layout(tmp_path).store, policy(), MAKE, LONG_AGO)
    assert (part.let, part.whole, part.since > LONG_AGO) == (4, False, True)
    monkeypatch.setattr(what_if, "LOOK_SECONDS", -1.0)
    assert try_rule(Layout(tmp_path).store, policy(), MAKE, LONG_AGO).let == 2


def test_a_policy_is_compared_with_the_accepted_one(tmp_path: Path) -> None:
    logged(tmp_path, ("make a", "ask"), ("rm x", "deny"), ("ls", "allow"), ("ls -l", "ask"), imported=1)
    before = policy(("Bash(ls *)", "allow"), ("Bash(rm *)", "deny"))
    after = policy(("Bash(ls *)", "deny"), ("Bash(rm *)", "deny"), ("Bash(make *)", "allow"))
    found = compare(Layout(tmp_path).store, after, before, LONG_AGO)
    assert found.accepted == {"allow": 2, "ask": 1, "deny": 1}
    assert (found.allow, found.ask, found.deny, found.changed, found.tightened) == (1, 0, 3, 3, 2)
    assert [(one.what, one.was, one.would_be) for one in found.first] == [
        ("make a", "ask", "allow"), ("ls", "allow", "deny"), ("ls -l", "allow", "deny"),
    ]
