"""Times and durations as people write and read them."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.cli.output import Output
from pmagent.events.event import parse_time
from pmagent.when import BadTime, duration, local, moment, seconds_between, short, sized, spoken, took
from tests.support.cases import each
from tests.unit.cli.test_cli_output import Terminal

NOW = datetime(2026, 11, 21, 19, 50, 0, 123456, tzinfo=UTC)


@each("text, seconds", [("10", 10), ("10s", 10), ("1h30m", 5400), ("250ms", 0.25), ("1.5h", 5400), ("2d", 172800)])
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@each("text", ["", "x", "10x", "-5m", "10m later", "m", "1e400"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadTime):
        duration(text)


@each("text, expected", [
    ("10m", "2026-11-21T19:40:00.123456Z"),
    ("14:30", "2026-11-21T14:30:00.000000Z"),
    ("21:00:07", "2026-11-20T21:00:07.000000Z"),
    ("today", "2026-11-21T00:00:00.000000Z"),
    ("yesterday", "2026-11-20T00:00:00.000000Z"),
    ("now", "2026-11-21T19:50:00.123456Z"),
    ("2026-11-21", "2026-11-21T00:00:00.000000Z"),
    ("2026-11-21T14:30", "2026-11-21T14:30:00.000000Z"),
    ("11-20 14:30:05.250", "2026-11-20T14:30:05.250000Z"),
    ("11-20", "2026-11-20T00:00:00.000000Z"),
    ("2026-11-21T14:30:00+02:00", "2026-11-21T12:30:00.000000Z"),
    ("2026-11-21T19:50:00.123456Z", "2026-11-21T19:50:00.123456Z"),
])
def test_moments(text: str, expected: str) -> None:
    assert moment(text, NOW) == expected


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine stands in Berlin."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_local_times_are_shown_and_meant_in_the_zone_of_their_day() -> None:
    assert local("2026-11-21T19:50:00.123456Z") == ("2026-11-21T20:50:00.123456 ", "CET")
    assert local("2026-07-21T19:50:00.123456Z") == ("2026-07-21T21:50:00.123456 ", "CEST")
    assert local("no time") == ("no time", "")
    here = NOW.astimezone()
    assert moment("2026-07-21T21:50", here) == "2026-07-21T19:50:00.000000Z"
    assert moment("07-21 21:50:00", here) == "2026-07-21T19:50:00.000000Z"
    assert moment("20:00", here) == "2026-11-21T19:00:00.000000Z"


@pytest.mark.usefixtures("berlin")
def test_a_terminal_shows_local_times_and_a_pipe_utc() -> None:
    then = "2020-11-21T23:50:00.123456Z"
    terminal, pipe = Output(Terminal(), Terminal(), {}), Output(io.BytesIO(), io.BytesIO(), {})
    assert (terminal.time(then), terminal.moment(then)) == ("2020-11-22 00:50:00", "2020-11-22 00:50:00 CET")
    assert terminal.time(then, brief=True) == "2020-11-22 00:50"
    assert (pipe.time(then), pipe.zone) == ("2020-11-21T23:50:00.123Z", "")
    assert len(pipe.time(then)) == pipe.time_width
    terminal.utc = True
    assert (terminal.moment(then), terminal.zone) == ("2020-11-21 23:50:00 UTC", "UTC")


@each("text", ["", "soon", "25:00", "14:61", "2026-13-01", "99999999999999d", "pos:3"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(BadTime):
        moment(text, NOW)


@given(st.text(max_size=20))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    try:
        parse_time(moment(text, NOW))
    except BadTime:
        return


@each(
    "seconds, text",
    [(0, "0s"), (0.0004, "0.4ms"), (1.5, "1.50s"), (59.999, "1m 00s"), (63, "1m 03s"), (7500, "2h 05m"),
     (273600, "3d 04h"), (-2, "-2.00s")],
)
def test_spoken(seconds: float, text: str) -> None:
    assert spoken(seconds) == text


def test_columns_and_sizes() -> None:
    assert short("2026-11-21T19:50:00.123456Z", 2026) == "11-21 19:50:00.123"
    assert short("2025-11-21T19:50:00.123456Z", 2026) == "2025-11-21 19:50:00"
    assert seconds_between("2026-11-21T19:50:00.123456Z", "2026-11-21T19:50:01.123456Z") == 1
    assert seconds_between("nonsense", "2026-11-21T19:50:01.123456Z") == 0
    sizes = [sized(n) for n in (0, 1023, 1536, 1 << 26, 1 << 50)]
    assert sizes == ["0 B", "1023 B", "1.5 KiB", "64.0 MiB", "1024.0 TiB"]


def test_the_time_something_took_is_never_negative_and_empty_before_it_begins() -> None:
    early, late = "2026-11-22T12:00:00.000000Z", "2026-11-22T12:01:03.000000Z"
    assert (took(early, late), took(late, early), took("", late)) == ("1m 03s", "0s", "")
