"""A repository's history as content of evidence; pure."""

from __future__ import annotations

from fractions import Fraction

from pmagent.actors.audit.detectors.evidence.text import counted, joined, one_line
from pmagent.contracts.audit_facts import Commit, RepoSurvey

_SHOWN_AT_EACH_END = 10
_MESSAGE_CHARS = 100


def history_content(survey: RepoSurvey) -> str:
    """How many commits there are and over which time, then the first and the last of them, oldest first."""
    history = survey.history
    head = f"{counted(history.total, 'commit')} over {span(history.span_s)}"
    if history.total > 1:
        head += f"; at most {percent(history.burst)} of them within 30 minutes"
    shown = history.shown
    if len(shown) > 2 * _SHOWN_AT_EACH_END:
        shown = [*shown[:_SHOWN_AT_EACH_END], *shown[-_SHOWN_AT_EACH_END:]]
    return joined([head, *map(_commit, shown)], history.total + 1)


def _commit(commit: Commit) -> str:
    return f"{commit.commit[:10]} {commit.timestamp} {one_line(commit.message, _MESSAGE_CHARS)}"


def span(seconds: int) -> str:
    """A length of time in the largest unit that it fills twice."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:,} {unit}"
    return counted(seconds, "second")


def percent(share: float) -> str:
    """A share in whole percent, cut off: 99.9 % is not all."""
    return f"{int(Fraction(str(share)) * 100)} %"
