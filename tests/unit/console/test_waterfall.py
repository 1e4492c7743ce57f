"""The times of a run drawn: bars where attempts were, lines where pauses were, and a scale that can be read."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from pmagent.console.pages.drawing.waterfall import ROWS_MAX, WIDTH, Lane, Part, bars, drawn, ticks
from pmagent.console.pages.jobs.run import parts_of
from pmagent.contracts.orchestra import TaskState
from pmagent.events.event import time_after
from pmagent.projections.views.runs import Task, Try
from tests.support.cases import each

START = "2026-11-22T12:00:00.000000Z"
NAMESPACE = "{http://www.w3.org/2000/svg}"


def at(seconds: float) -> str:
    """A log time."""
    return time_after(START, seconds)


def part(kind: str, start: float, end: float) -> Part:
    """A piece of a task's time."""
    return Part(kind, at(start), at(end), f"{kind} from {start} to {end}")


def rects(lanes: list[Lane], whole: float) -> list[dict[str, str]]:
    """The bars of a picture."""
    every = ET.fromstring(str(drawn(lanes, START, at(whole)))).iter(f"{NAMESPACE}rect")
    return [dict(one.attrib) for one in every if "bar" in one.attrib["class"].split()]


def test_nothing_is_drawn_where_nothing_has_begun() -> None:
    assert drawn([], START, at(1)) == ""
    assert drawn([Lane("a", "planned", [])], START, at(1)) == ""


def test_bars_are_as_long_as_the_attempts() -> None:
    first, second = bars([part("done", 0, 5), part("done", 5, 10)], START, at(10))
    assert (first.left, first.width) == (0, WIDTH // 2)
    assert (second.left, second.width) == (WIDTH // 2, WIDTH // 2)


def test_attempts_and_pauses_are_told_apart() -> None:
    parts = [part("retry", 0, 1), part("waiting", 1, 3), part("done", 3, 4)]
    failed, pause, again = rects([Lane("a", "done", parts)], 4)
    assert [one["class"] for one in (failed, pause, again)] == ["bar retry", "bar waiting", "bar done"]
    assert int(pause["height"]) < int(failed["height"])
    assert int(pause["width"]) == pytest.approx(2 * int(failed["width"]), abs=2)


@each(
    "state, tries, kinds",
    [
        ("running", [Try(1, at(0))], ["running"]),
        ("running", [Try(1, at(0), at(1), exit_code=0)], ["done"]),
        ("running", [Try(1, at(0), at(1), "exit code 1", at(9), 1)], ["retry", "waiting"]),
        ("running", [Try(1, at(0), at(1), "exit code 1", at(2), 1), Try(2, at(2))], ["retry", "waiting", "running"]),
        ("done", [Try(1, at(0), at(1)), Try(2, at(2), at(3), exit_code=0)], ["retry", "waiting", "done"]),
        ("done", [Try(1, at(0), at(1), "", "", 1), Try(2, at(1), at(3), exit_code=0)], ["retry", "done"]),
        ("failed", [Try(1, at(0), at(1), "no", at(2)), Try(2, at(2), at(3), "no")], ["retry", "waiting", "failed"]),
        ("failed", [Try(1, at(0), at(1), "", "", None)], ["failed"]),
        ("planned", [], []),
    ],
)
def test_a_task_s_time_is_made_of_its_attempts_and_pauses(state: TaskState, tries: list[Try], kinds: list[str]) -> None:
    made = parts_of(Task(START, state, tries=tries), at(5))
    assert [one.kind for one in made] == kinds
    assert [one.start for one in made[1:]] == [one.end for one in made[:-1]]


def test_an_instant_is_seen_all_the_same() -> None:
    (bar,) = bars([part("done", 3, 3)], START, at(10_000))
    assert bar.width == 2


def test_a_clock_that_went_back_leads_out_of_no_picture() -> None:
    (bar,) = bars([part("done", -5, -7)], START, at(-3))
    assert 0 <= bar.left <= bar.left + bar.width <= WIDTH


@each(
    "seconds, marks",
    [
        pytest.param(0.004, [0, 0.001, 0.002, 0.003, 0.004], id="milliseconds"),
        pytest.param(10, [0, 2, 4, 6, 8, 10], id="seconds"),
        pytest.param(400, [0, 60, 120, 180, 240, 300, 360], id="minutes"),
        pytest.param(86_400, [0, 14_400, 28_800, 43_200, 57_600, 72_000, 86_400], id="hours"),
        pytest.param(30 * 86_400, [0, *(4 * 86_400 * n for n in range(1, 8))], id="days"),
    ],
)
def test_the_scale_is_in_steps_that_people_count_in(seconds: float, marks: list[float]) -> None:
    assert ticks(seconds) == pytest.approx(marks)


def test_rows_are_bounded() -> None:
    lanes = [Lane(f"t{n}", "done", [part("done", n, n + 1)]) for n in range(ROWS_MAX + 50)]
    assert len(rects(lanes, 500)) == ROWS_MAX


def test_a_row_says_whose_it_is_and_where_more_stands() -> None:
    lane = Lane("build", "failed", [part("failed", 0, 1)], "1.00s", "/runs/r/tasks/1")
    picture = ET.fromstring(str(drawn([lane], START, at(2))))
    (link,) = picture.iter(f"{NAMESPACE}a")
    assert link.attrib["href"] == "/runs/r/tasks/1"
    assert "✗" in "".join(link.itertext())
    assert "failed from 0 to 1" in "".join(picture.itertext())
