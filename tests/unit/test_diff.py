"""Two logs side by side: the first difference, and what each holds alone."""

from __future__ import annotations

import msgspec
import pytest

from events.memory import MemoryStorage
from replay.diff import WINDOW, diff_logs
from tests.support.recorded import altered_log, stored_log
from tests.support.toys import Bench, Poked, Toy


def run(numbers: list[int], prefix: str = "x", start: int = 0) -> MemoryStorage:
    """A log of these facts and what follows from them."""
    bench = Bench([])
    bench.second = start
    for index, number in enumerate(numbers):
        bench.fact(Poked(n=number), id=f"{prefix}{index}")
    return stored_log(bench.history)


def test_a_log_equals_itself() -> None:
    log = run(list(range(50)))
    result = diff_logs(log, log, times=True, ids=True)
    assert result.equal
    assert (result.common, result.events_a, result.events_b, result.types) == (50, 50, 50, [])


def test_times_and_ids_count_only_when_asked_for() -> None:
    one, other = run([1, 2, 3]), run([1, 2, 3], "y", start=7)
    assert diff_logs(one, other).equal
    assert not diff_logs(one, other, ids=True).equal
    assert not diff_logs(one, run([1, 2, 3], start=7), times=True).equal


def test_the_first_difference_is_shown_and_the_rest_is_aligned() -> None:
    result = diff_logs(run([1, 2, 3, 4, 5, 6]), run([1, 2, 9, 3, 4, 6]))
    assert result.common == 2
    assert result.first is not None
    assert (result.first.position_a, result.first.position_b) == (3, 3)
    assert any(line.startswith("-") and '"n": 3' in line for line in result.first.lines)
    assert any(line.startswith("+") and '"n": 9' in line for line in result.first.lines)
    assert result.matched == 3
    assert [(count.type, count.only_a, count.only_b) for count in result.types] == [("toy.poked", 1, 1)]


@pytest.mark.parametrize(("a", "b"), [([], [1, 2]), ([1, 2], []), ([1], [1, 2, 3])])
def test_a_log_that_ends_before_the_other(a: list[int], b: list[int]) -> None:
    result = diff_logs(run(a), run(b))
    assert result.first is not None
    assert 0 in (result.first.position_a, result.first.position_b)
    assert (result.events_a, result.events_b) == (len(a), len(b))
    assert sum(count.only_a + count.only_b for count in result.types) == abs(len(a) - len(b))


def test_long_logs_are_aligned_window_by_window() -> None:
    numbers = list(range(5 * WINDOW))
    inserted = [-1, *numbers[: 2 * WINDOW], -2, *numbers[2 * WINDOW : 4 * WINDOW], *numbers[4 * WINDOW + 10 :]]
    result = diff_logs(run(numbers), run(inserted))
    assert result.common == 0
    assert result.matched == len(numbers) - 10
    assert [(count.only_a, count.only_b) for count in result.types] == [(10, 2)]


def test_a_decision_that_was_changed_is_the_first_difference() -> None:
    bench = Bench([Toy("bob")])
    for n in range(30):
        bench.fact(Poked(n=n))
    log = stored_log(bench.history)
    target = next(event for event in bench.history[20:] if event.kind == "decision")
    altered = altered_log(log, {target.position: lambda event: msgspec.structs.replace(event, type="toy.invented")})
    result = diff_logs(log, altered)
    assert result.first is not None
    assert result.first.position_a == result.first.position_b == target.position
    assert sum(count.only_a for count in result.types) == sum(count.only_b for count in result.types) == 1
