"""What the history of the audited branch tells: how much, how spread, how told, in which order; pure."""

from __future__ import annotations

import re
from typing import Final

from pmagent.contracts.audit_facts import Commit, Finding, History

COMMITS_MIN: Final = 4
"""From so many commits on a history is more than one upload."""
SPAN_MIN_S: Final = 3_600
"""Commits within less than an hour were not made over time."""
BURST_MAX: Final = 0.8
"""A larger share of commits within 30 minutes is a bulk."""
_SHOWN: Final = 12
_MESSAGE_CHARS: Final = 100
_EMPTY_WORDS: Final = frozenset({
    "wip", "update", "updates", "updated", "fix", "fixes", "fixed", "changes", "change", "commit", "init", "initial",
    "test", "tests", "misc", "stuff", "temp", "tmp", "final", "done", "more", "minor", "save", "upload", "uploaded",
    "files", "file", "add", "added", "new", "asdf", "and", "the", "first", "last", "version", "code", "cleanup",
    "refactor", "via", "of",
})  # fmt: skip
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


def _words(*rows: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(word for row in rows for word in row.split())})\b", re.IGNORECASE)


_STAGES: Final = (
    (
        "setup",
        _words(
            r"init\w* set\s?up scaffold\w* bootstrap\w* skeleton environment env depend\w* pyproject requirements",
            r"config\w* gitignore readme structure boilerplate state models? schema\w* types?",
        ),
    ),
    (
        "tools",
        _words(
            r"tools? clone git ast pars\w* pdf ingest\w* extract\w* fetch\w* client api retriev\w* search scrap\w*",
            r"sandbox\w* detective\w* investigat\w* analy[sz]\w* loader database storage",
        ),
    ),
    (
        "orchestration",
        _words(
            r"graph\w* orchestrat\w* langgraph workflow pipeline nodes? edges? parallel fan-?(?:in|out) judges?",
            r"agents? supervisor rout\w* synthes\w* justice aggregat\w* wire wiring end-to-end e2e",
        ),
    ),
)
"""What a message speaks of; the last stage that it names counts, for orchestration speaks of tools as well."""


def history_findings(history: History) -> list[Finding]:
    """The findings of ``history``. They are about the branch as a whole: path ``.``, line 0.

    Confidence: 1 for counts; 0.9 for the spread over time, for clocks of commits may be set; 0.7 for messages; 0.6 at
    most for the progression, which is told from words alone.
    """
    found = [_commits(history), _spread(history), _messages(history.shown), _progression(history.shown)]
    return [finding for finding in found if finding is not None]


def _of(goal: str, text: str, confidence: float) -> Finding:
    return Finding(goal=goal, path=".", line=0, text=text[:2_000], confidence=confidence)


def _commits(history: History) -> Finding | None:
    if history.total < COMMITS_MIN:
        return None
    return _of("history.commits", f"{history.total} commits\n{_listed(history.shown)}", 1.0)


def _spread(history: History) -> Finding | None:
    if history.total < COMMITS_MIN or history.span_s < SPAN_MIN_S or history.burst > BURST_MAX:
        return None
    text = (
        f"{history.total} commits over {_span(history.span_s)}; at most {history.burst:.0%} of them within 30 minutes"
    )
    return _of("history.spread", text, 0.9)


def _span(seconds: int) -> str:
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} seconds"


def _messages(commits: list[Commit]) -> Finding | None:
    """Whether two thirds of the messages say something, and are not the same again and again."""
    if len(commits) < COMMITS_MIN:
        return None
    told = [commit for commit in commits if _says_something(commit.message)]
    different = len({commit.message.strip().casefold() for commit in commits})
    if 3 * len(told) < 2 * len(commits) or 2 * different < len(commits):
        return None
    text = f"{len(told)} of {len(commits)} messages looked at say what was done\n{_listed(told)}"
    return _of("history.messages", text, 0.7)


def _says_something(message: str) -> bool:
    """Whether the subject has two words that are not empty ones."""
    subject = message.strip().partition("\n")[0]
    return len({word.casefold() for word in _WORD.findall(subject)} - _EMPTY_WORDS) >= 2


def stage_of(message: str) -> str:
    """``setup``, ``tools`` or ``orchestration``, by the words of the subject; "" where it speaks of none."""
    subject = message.strip().partition("\n")[0]
    return next((name for name, words in reversed(_STAGES) if words.search(subject)), "")


def _progression(commits: list[Commit]) -> Finding | None:
    """Whether the middle of the commits about setup comes before that about tools, and that before orchestration."""
    places: dict[str, list[int]] = {name: [] for name, _words in _STAGES}
    for number, commit in enumerate(commits):
        stage = stage_of(commit.message)
        if stage:
            places[stage].append(number)
    if not all(places.values()):
        return None
    middles = [numbers[len(numbers) // 2] for numbers in places.values()]
    if not middles[0] < middles[1] < middles[2]:
        return None
    told = min(len(numbers) for numbers in places.values())
    counted = ", ".join(f"{len(numbers)} about {name}" for name, numbers in places.items())
    firsts = [commits[numbers[0]] for numbers in places.values()]
    return _of("history.progression", f"{counted}, in this order\n{_listed(firsts)}", 0.6 if told >= 2 else 0.5)


def _listed(commits: list[Commit]) -> str:
    """The first and the last, a line each."""
    half = _SHOWN // 2
    shown = commits if len(commits) <= _SHOWN else [*commits[:half], *commits[-half:]]
    lines = [_line(commit) for commit in shown]
    if len(shown) < len(commits):
        lines.insert(half, "…")
    return "\n".join(lines)


def _line(commit: Commit) -> str:
    subject = commit.message.strip().partition("\n")[0][:_MESSAGE_CHARS]
    return f"{commit.commit[:9]} {commit.timestamp} {subject}"
