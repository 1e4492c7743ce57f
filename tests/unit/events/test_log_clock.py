"""The time of a log: the real time, and one that goes on whatever becomes of the real clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.events import log
from pmagent.events.event import parse_time, time_after
from pmagent.events.log import GRAIN_NS, LogClock, now

SECOND = 10**9


class Machine:
    """The two clocks of a machine, in nanoseconds."""

    def __init__(self) -> None:
        self.real = 1_800_000_000 * SECOND
        self.steady = 5_000 * SECOND

    def time_ns(self) -> int:
        """The clock that can be set."""
        return self.real

    def clock_gettime_ns(self, _: int) -> int:
        """The clock that cannot."""
        return self.steady

    def wait(self, seconds: float) -> None:
        """Both go on."""
        self.real += int(seconds * SECOND)
        self.steady += int(seconds * SECOND)

    def set_by(self, seconds: float) -> None:
        """Somebody sets the real one."""
        self.real += int(seconds * SECOND)

    CLOCK_BOOTTIME = 7


@pytest.fixture
def machine() -> Iterator[Machine]:
    with pytest.MonkeyPatch.context() as patch:
        made = Machine()
        patch.setattr(log, "time", made)
        yield made


def seconds(earlier: str, later: str) -> float:
    return (parse_time(later) - parse_time(earlier)).total_seconds()


def test_it_is_the_real_time_while_nobody_sets_that_back(machine: Machine) -> None:
    clock = LogClock()
    for _ in range(3):
        assert clock.now() == now()
        machine.wait(0.25)
    machine.set_by(3600)
    assert clock.now() == now()
    machine.wait(3600 * 24 * 365)
    assert clock.now() == now()


def test_set_back_it_goes_on_as_fast_as_time_but_for_a_thousandth_until_the_real_time_has_caught_up(
    machine: Machine,
) -> None:
    clock = LogClock()
    before = clock.now()
    machine.set_by(-10)
    machine.wait(1000)
    assert seconds(before, clock.now()) == 999
    machine.wait(10_000)
    assert clock.now() == now()
    machine.wait(1)
    assert clock.now() == now()


@pytest.mark.parametrize("ahead", [3600, 3 * 365 * 24 * 3600, 300 * 365 * 24 * 3600])
def test_it_goes_on_from_what_the_log_has_said_however_far_ahead_that_is(machine: Machine, ahead: int) -> None:
    stood = time_after(now(), ahead)
    clock = LogClock(stood)
    assert clock.now() == stood
    machine.wait(1000)
    assert seconds(stood, clock.now()) == 999
    assert LogClock(time_after(now(), -3600)).now() == now()


def test_at_the_end_of_time_it_stands_and_what_waits_is_due(machine: Machine) -> None:
    last = "9999-12-31T23:59:59.999999Z"
    clock = LogClock(last)
    machine.wait(5)
    assert clock.now() == last
    assert time_after(last, 60) == last
    assert clock.timer(time_after(last, 60))() == 0


@pytest.mark.parametrize("ahead", [0, 3600, 3 * 365 * 24 * 3600])
def test_a_timer_counts_real_seconds_wherever_the_log_stands_and_is_due_by_it(machine: Machine, ahead: int) -> None:
    clock = LogClock(time_after(now(), ahead))
    at = time_after(clock.now(), 60)
    left = clock.timer(at)
    machine.wait(59)
    assert left() == 1
    machine.set_by(-1e6)  # it cannot delay it
    machine.wait(1)
    assert left() == 0
    assert at <= clock.now() <= time_after(at, 0.001)


def test_a_timer_is_due_when_the_real_clock_jumps_past_it(machine: Machine) -> None:
    clock = LogClock()
    left = clock.timer(time_after(clock.now(), 60))
    machine.set_by(3600)
    assert left() == 0


@given(st.lists(st.tuples(st.booleans(), st.floats(-1e6, 1e6))))
def test_whatever_becomes_of_the_real_clock_it_goes_on_and_never_back(steps: list[tuple[bool, float]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        machine = Machine()
        patch.setattr(log, "time", machine)
        clock = LogClock()
        for sets, by in steps:
            before, steady = clock.now(), machine.steady
            if sets:
                machine.set_by(by)
            else:
                machine.wait(abs(by))
            passed = (machine.steady - steady) / SECOND
            assert seconds(before, clock.now()) >= passed * 999 / 1000 - GRAIN_NS / SECOND - 1e-5
            assert seconds(now(), clock.now()) >= -GRAIN_NS / SECOND


def test_a_reading_serves_for_a_tenth_of_a_millisecond_and_for_none_that_is_due(machine: Machine) -> None:
    clock = LogClock()
    first, left = clock.now(), clock.timer(time_after(now(), 0.00009))
    machine.wait(0.00009)
    assert clock.now() == first
    assert left() == 0
    assert clock.now() == now() > first
    machine.set_by(-0.00001)
    assert clock.now() > first
