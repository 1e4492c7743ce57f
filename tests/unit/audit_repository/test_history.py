"""The times of commits: their meaning, and how they are read from git."""

from __future__ import annotations

from datetime import datetime

from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.audit.sources.repository.history import (
    BURST_SECONDS,
    MESSAGE_CHARS,
    burst,
    every_commit,
    history,
    stamp,
)
from pmagent.contracts.audit_facts import COMMITS_SHOWN
from tests.support.cases import each


class Log:
    """git, with these commits: time as git writes it raw, first line of the message."""

    def __init__(self, *commits: tuple[str, str]) -> None:
        self.commits = {f"{number:040x}": commit for number, commit in enumerate(commits)}

    def __call__(self, *arguments: str, output_bytes: int = 0, stdin: bytes = b"") -> bytes:
        """Answer a log, or whether this is all."""
        if arguments == ("rev-parse", "--is-shallow-repository"):
            return b"false\n"
        assert output_bytes > 0
        if "--stdin" not in arguments:
            return "".join(f"{name} {time}\n" for name, (time, _) in self.commits.items()).encode()
        wanted = stdin.decode().split()
        return "".join(f"{name} {self.commits[name][1]}\0" for name in wanted).encode()


@given(st.lists(st.integers(0, 10**5), max_size=40))
def test_the_burst_is_the_fullest_half_hour(times: list[int]) -> None:
    times.sort()
    counts = [sum(start <= time <= start + BURST_SECONDS for time in times) for start in times]
    assert burst(times) == (round(max(counts) / len(times), 4) if times else 0)


@given(st.integers(-(10**11), 10**11), st.integers(-14 * 60, 14 * 60))
def test_a_stamp_is_the_moment_that_it_says(at: int, minutes: int) -> None:
    said = stamp(at, minutes * 60)
    if said:
        assert datetime.fromisoformat(said).timestamp() == at


@each("at", [10**13, -(10**13), 10**18])
def test_a_time_that_no_calendar_has_is_none(at: int) -> None:
    assert stamp(at, 0) == ""


def test_commits_are_told_in_the_order_that_git_gives() -> None:
    log = Log(("100 +0000", "first"), ("50 +0100", "second"), ("200 -0330", "third"))
    found = history(log, "HEAD")
    assert [commit.message for commit in found.shown] == ["first", "second", "third"]
    assert [commit.timestamp[-6:] for commit in found.shown] == ["+00:00", "+01:00", "-03:30"]
    assert (found.total, found.span_s, found.burst) == (3, 150, 1.0)


def test_times_that_git_cannot_read_are_the_epochs() -> None:
    found = history(Log(("", "none"), ("x", "odd"), ("5 +9999", "zone")), "HEAD")
    assert [commit.timestamp for commit in found.shown] == [
        "1970-01-01T00:00:00+00:00", "1970-01-01T00:00:00+00:00", "1970-01-01T00:00:05+00:00",
    ]


def test_messages_are_cleaned_and_short() -> None:
    (only,) = history(Log(("1 +0000", "a\x1b[31mb\tc" + "d" * 1000)), "HEAD").shown
    assert only.message.startswith("a [31mb cd")
    assert len(only.message) == MESSAGE_CHARS


def test_an_empty_history_is_one() -> None:
    found = history(Log(), "HEAD")
    assert (found.total, found.shown, found.span_s, found.burst) == (0, [], 0, 0.0)


@given(st.integers(0, 3 * COMMITS_SHOWN))
def test_as_many_are_shown_as_there_are_or_may_be(total: int) -> None:
    log = Log(*[(f"{number} +0000", f"number {number}") for number in range(total)])
    shown = [int(commit.commit, 16) for commit in history(log, "HEAD").shown]
    assert len(shown) == min(total, COMMITS_SHOWN)
    assert shown == sorted(shown)
    if total > COMMITS_SHOWN:
        half = COMMITS_SHOWN // 2
        assert shown == [*range(half), *range(total - half, total)]
    assert len(every_commit(log, "HEAD")) == total
