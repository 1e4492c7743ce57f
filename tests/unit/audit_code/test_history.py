"""The findings of a history, which say no more than it does."""

from __future__ import annotations

from pmagent.actors.audit.detectors.code.history import history_findings
from pmagent.contracts.audit_facts import Changes, Commit, History
from tests.support.cases import each
from tests.support.detected import goals, of

TOLD = (
    "Project skeleton and dependencies", "Configuration from the environment",
    "Clone repositories into a temporary directory", "Parse Python files by their syntax tree",
    "Wire the nodes into a graph", "Judges run in parallel",
)


GREW = Changes(added=500, largest=0.3, first_hour=0.1, empty=0, growing=6)


def history(*messages: str, span_s: int = 90_000, burst: float = 0.2, changes: Changes | None = GREW) -> History:
    shown = [
        Commit(commit=f"{number:040x}", message=message, timestamp=f"2026-01-01T0{number % 10}:00:00+00:00")
        for number, message in enumerate(messages)
    ]
    return History(total=len(shown), shown=shown, span_s=span_s, burst=burst, changes=changes)


def test_a_history_that_grew_tells_all_four() -> None:
    findings = history_findings(history(*TOLD))
    assert goals(findings) == {"history.commits", "history.spread", "history.messages", "history.progression"}
    (commits,) = of(findings, "history.commits")
    assert (commits.path, commits.line) == (".", 0)
    assert commits.text.startswith("6 commits\n000000000 2026-01-01T00:00:00+00:00 Project skeleton")
    assert "6 commits brought a twentieth" in of(findings, "history.progression")[0].text


@each("messages", [(), ("init",), ("init", "final")])
def test_two_commits_or_fewer_are_no_history(messages: tuple[str, ...]) -> None:
    assert goals(history_findings(history(*messages, changes=None))) == set()


@each("changes, found, missing", [
    (Changes(added=500, largest=0.98, first_hour=0.1, empty=4, growing=1), "history.bulk", "history.commits"),
    (Changes(added=500, largest=0.2, first_hour=0.9, empty=0, growing=6), "history.bulk", "history.spread"),
    (Changes(added=500, largest=0.7, first_hour=0.7, empty=0, growing=3), "history.commits", "history.progression"),
    (Changes(added=500, largest=0.4, first_hour=0.4, empty=3, growing=3), "history.progression", "history.bulk"),
    (Changes(added=0, largest=0.0, first_hour=0.0, empty=0, growing=0), "history.commits", "history.bulk"),
])
def test_what_diffs_did_counts_and_not_what_messages_say(changes: Changes, found: str, missing: str) -> None:
    seen = goals(history_findings(history(*TOLD, changes=changes)))
    assert found in seen
    assert missing not in seen


@each("span_s, burst", [(600, 1.0), (3_599, 0.1), (90_000, 0.9)])
def test_commits_within_minutes_or_mostly_at_once_are_not_spread(span_s: int, burst: float) -> None:
    assert "history.spread" not in goals(history_findings(history(*TOLD, span_s=span_s, burst=burst)))


@each("messages", [
    ("update", "fix", "wip", "changes", "final", "final final"),
    ("Parse the files",) * 6,
    (".", "..", "...", "", " ", "\n"),
])
def test_empty_or_equal_messages_say_nothing(messages: tuple[str, ...]) -> None:
    assert "history.messages" not in goals(history_findings(history(*messages)))


def test_messages_in_other_scripts_say_something() -> None:
    assert "history.messages" in goals(history_findings(history("добавить разбор файлов", "новый граф узлов", *TOLD)))


def test_a_long_history_shows_its_ends() -> None:
    (commits,) = of(history_findings(history(*(f"step {number} is done" for number in range(90)))), "history.commits")
    listed = commits.text.split("\n")
    assert (len(listed), listed[7]) == (14, "…")
    assert "step 89" in listed[-1]


@each(
    "commits, growing, sure",
    [(4, 3, 0.9), (4, 4, 0.5), (5, 3, 0.5), (5, 5, 0.5), (6, 6, None), (3, 3, None)],
)
def test_few_commits_are_large_steps(commits: int, growing: int, sure: float | None) -> None:
    changes = Changes(added=500, largest=0.4, first_hour=0.1, empty=0, growing=growing)
    found = of(history_findings(history(*TOLD[:commits], changes=changes)), "history.coarse")
    assert [one.confidence for one in found] == ([] if sure is None else [sure])
    week = history(*TOLD[:5], span_s=604_800, changes=changes)
    assert bool(of(history_findings(week), "history.coarse")) == (growing == 3)
