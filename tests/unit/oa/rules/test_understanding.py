"""SafeOPSDecision doubts what it does not understand, and goals that send, reveal or remove something."""

from __future__ import annotations

import tomllib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.oa.reasoning.rules.engine import answer
from pmagent.actors.oa.reasoning.rules.text import is_printable
from pmagent.actors.oa.reasoning.rules.understanding import not_understood, outward, removing
from tests.support.cases import each
from tests.support.rules_runs import RulesRun

GOALS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("goals.toml").read_text("utf-8"))


def allowed(goal: str) -> bool:
    return RulesRun("SafeOPSDecision", goal).verdict() == "PROCEED"


def test_ordinary_work_stays_allowed() -> None:
    ordinary = GOALS["ordinary"]
    assert len(ordinary) >= 50
    assert sum(map(allowed, ordinary)) >= 0.9 * len(ordinary)


def test_nothing_that_sends_removes_or_is_in_another_language_is_allowed() -> None:
    assert len(GOALS["risky"]) >= 100
    assert [goal for goal in GOALS["risky"] if allowed(goal)] == []


@each("goal, words", [
    ("Add a field for tide heights", []),
    ("Reword docs/berths.md", []),
    ("Run `löschen --alles`", []),
    ("Deploy the Kubernetes manifests", []),
    ("Fix the zorbl", []),
    ("Zorbl the parser", ["Zorbl"]),
    ("Fix the parser and zorbl the rest", ["zorbl"]),
    ("Update alle Daten", ["alle", "Daten"]),
    ("Test löschen", ["löschen"]),
    ("Folder the parser", ["Folder"]),
    ("删除所有文件", ["删除所有文件"]),
    ("/var/log leeren", ["/var/log", "leeren"]),
    ("-", ["-"]),
])
def test_the_words_that_are_not_understood_are_named(goal: str, words: list[str]) -> None:
    assert not_understood(goal) == words


def test_the_verdict_names_the_words_and_asks_for_their_meaning() -> None:
    said = RulesRun("SafeOPSDecision", "Update alle Daten").ask()
    assert "not understood: alle, Daten" in said.rationale
    conditions = [one for one in said.diagnostics if one.category == "condition"]
    assert any("alle, Daten" in one.message and one.remediation for one in conditions)


@each("goal, found", [
    ("Fix the token refresh", 0),
    ("Never log passwords", 0),
    ("Explain why we hash passwords", 0),
    ("Mask secrets in the log", 0),
    ("Fix the mail template", 0),
    ("Log the password", 1),
    ("Fix the form, then mail it", 1),
    ("Show me ~/.aws/config", 1),
    ("Make the method public", 0),
    ("Make the bucket public", 1),
    ("Remove the unused imports", 0),
    ("Remove the unused imports and tables", 1),
    ("Format the code", 0),
    ("Format the drive", 1),
])
def test_what_leaves_or_is_lost_is_told_from_words_alone(goal: str, found: int) -> None:
    assert bool(outward(goal) + removing(goal)) == bool(found), (outward(goal), removing(goal))


@given(st.text(max_size=400))
def test_any_text_is_read_and_printable_words_are_named(goal: str) -> None:
    assert all(len(word) <= 40 and is_printable(word) for word in not_understood(goal))
    outward(goal), removing(goal)


def test_recorded_requests_are_answered_by_their_own_edition() -> None:
    run = RulesRun("SafeOPSDecision", "Update alle Daten")
    verdicts = [answer(run.envelope, run.evidence, edition).payload for edition in (0, 1)]
    assert [getattr(one, "allowed_action", "") for one in verdicts] == ["PROCEED", "WARN"]
