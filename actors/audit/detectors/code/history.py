"""The history of the audited branch: how much, how spread, how told, in which steps; pure.

The diffs count, not what messages say of them: a commit that changes nothing is none, and a history around one upload
is one upload.
"""

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
STEPS_MIN: Final = 3
"""From so many commits on, that do something, there is an order in them."""
LUMP: Final = 0.6
"""A commit that brings more of the code than this is no step."""
FEW: Final = 5
"""Of so many commits or fewer each is a large part of the code."""
BRIEF_S: Final = 3 * 86_400
BULK: Final = 0.85
"""A larger share of the code at once is an upload."""
_SHOWN: Final = 12
_MESSAGE_CHARS: Final = 100
_EMPTY_WORDS: Final = frozenset({
    "wip", "update", "updates", "updated", "fix", "fixes", "fixed", "changes", "change", "commit", "init", "initial",
    "test", "tests", "misc", "stuff", "temp", "tmp", "final", "done", "more", "minor", "save", "upload", "uploaded",
    "files", "file", "add", "added", "new", "asdf", "and", "the", "first", "last", "version", "code", "cleanup",
    "refactor", "via", "of",
})  # fmt: skip
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


def history_findings(history: History) -> list[Finding]:
    """The findings of ``history``. They are about the branch as a whole: path ``.``, line 0.

    Confidence: 1 for counts; 0.9 for what clocks of commits tell, which may be set, and for the progression; 0.7 for
    messages.
    """
    found = [_commits(history), _spread(history), _messages(history.shown), _progression(history)]
    found += [_bulk(history), _coarse(history)]
    return [finding for finding in found if finding is not None]


def _of(goal: str, text: str, confidence: float) -> Finding:
    return Finding(goal=goal, path=".", line=0, text=text[:2_000], confidence=confidence)


def _working(history: History) -> int:
    """The commits that changed something."""
    return history.total - (history.changes.empty if history.changes is not None else 0)


def _commits(history: History) -> Finding | None:
    if _working(history) < COMMITS_MIN:
        return None
    return _of("history.commits", f"{history.total} commits\n{_listed(history.shown)}", 1.0)


def _spread(history: History) -> Finding | None:
    lumped = history.changes is not None and max(history.changes.largest, history.changes.first_hour) > BULK
    if _working(history) < STEPS_MIN or history.span_s < SPAN_MIN_S or history.burst > BURST_MAX or lumped:
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
    if len(commits) < STEPS_MIN:
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


def _progression(history: History) -> Finding | None:
    """Whether several commits brought the code, none of them most of it."""
    changes = history.changes
    if changes is None or changes.growing < STEPS_MIN or changes.largest > LUMP:
        return None
    text = f"{changes.growing} commits brought a twentieth of the code or more each, the largest {changes.largest:.0%}"
    return _of("history.progression", text, 0.9)


def _bulk(history: History) -> Finding | None:
    """Whether one commit, or the first hour, brought nearly all of the code."""
    changes = history.changes
    if changes is None or history.cut or not changes.added:
        return None
    most = max(changes.largest, changes.first_hour)
    if most <= BULK:
        return None
    by = "one commit" if changes.largest > BULK else "the first hour"
    text = f"{by} brought {most:.0%} of the {changes.added:,} lines of code; {changes.empty} commits changed nothing"
    return _of("history.bulk", text, 0.95)


def _coarse(history: History) -> Finding | None:
    """Whether the code came in so few steps that each of them is a large part of it; of little weight where there are
    just enough, or all within some evenings."""
    changes = history.changes
    if changes is None or history.cut or changes.growing < STEPS_MIN:
        return None
    if not COMMITS_MIN <= _working(history) <= FEW:  # fewer are no history in the first place
        return None
    brief = history.span_s < BRIEF_S
    if changes.growing > STEPS_MIN and _working(history) == FEW and not brief:
        return None
    text = f"{changes.growing} commits brought the code in {_span(history.span_s)}, the largest {changes.largest:.0%}"
    return _of("history.coarse", text, 0.9 if changes.growing == STEPS_MIN and _working(history) < FEW else 0.5)


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
