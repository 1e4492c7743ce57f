"""The findings of a history, which say no more than it does."""

from __future__ import annotations

from pmagent.actors.audit.detectors.code.history import history_findings, stage_of
from pmagent.contracts.audit_facts import Commit, History
from tests.support.cases import each
from tests.support.detected import goals, of

TOLD = (
    "Project skeleton and dependencies",
    "Configuration from the environment",
    "Clone repositories into a temporary directory",
    "Parse Python files by their syntax tree",
    "Wire the nodes into a graph",
    "Judges run in parallel",
)


def history(*messages: str, span_s: int = 90_000, burst: float = 0.2) -> History:
    shown = [
        Commit(commit=f"{number:040x}", message=message, timestamp=f"2026-01-01T0{number % 10}:00:00+00:00")
        for number, message in enumerate(messages)
    ]
    return History(total=len(shown), shown=shown, span_s=span_s, burst=burst)


def test_a_history_that_grew_tells_all_four() -> None:
    findings = history_findings(history(*TOLD))
    assert goals(findings) == {"history.commits", "history.spread", "history.messages", "history.progression"}
    (commits,) = of(findings, "history.commits")
    assert (commits.path, commits.line) == (".", 0)
    assert commits.text.startswith("6 commits\n000000000 2026-01-01T00:00:00+00:00 Project skeleton")
    assert of(findings, "history.progression")[0].confidence <= 0.6


@each("messages", [(), ("init",), ("init", "final"), ("a b c", "d e f", "g h i")])
def test_three_commits_or_fewer_are_no_history(messages: tuple[str, ...]) -> None:
    assert history_findings(history(*messages)) == []


@each("span_s, burst", [(600, 1.0), (3_599, 0.1), (90_000, 0.9)])
def test_commits_within_minutes_or_mostly_at_once_are_not_spread(span_s: int, burst: float) -> None:
    assert "history.spread" not in goals(history_findings(history(*TOLD, span_s=span_s, burst=burst)))


@each(
    "messages",
    [
        ("update", "fix", "wip", "changes", "final", "final final"),
        ("Parse the files",) * 6,
        (".", "..", "...", "", " ", "\n"),
    ],
)
def test_empty_or_equal_messages_say_nothing(messages: tuple[str, ...]) -> None:
    assert "history.messages" not in goals(history_findings(history(*messages)))


def test_messages_in_other_scripts_say_something() -> None:
    assert "history.messages" in goals(history_findings(history("добавить разбор файлов", "новый граф узлов", *TOLD)))


def test_a_progression_has_its_order() -> None:
    assert "history.progression" not in goals(history_findings(history(*reversed(TOLD))))
    assert "history.progression" not in goals(history_findings(history(*TOLD[:4], "Words", "More words")))


@each(
    "message, stage",
    [
        ("Set up the project", "setup"),
        ("Add git clone tool", "tools"),
        ("Connect tools in the graph", "orchestration"),
        ("Correct a typo", ""),
        ("Words\n\ngraph", ""),
    ],
)
def test_the_last_stage_that_a_subject_names_counts(message: str, stage: str) -> None:
    assert stage_of(message) == stage


def test_a_long_history_shows_its_ends() -> None:
    (commits,) = of(history_findings(history(*(f"step {number} is done" for number in range(90)))), "history.commits")
    listed = commits.text.split("\n")
    assert (len(listed), listed[7]) == (14, "…")
    assert "step 89" in listed[-1]
