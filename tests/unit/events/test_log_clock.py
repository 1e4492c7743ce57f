"""The time of a log: the real time, and one that goes on whatever becomes of the real clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import log
from events.event import parse_time, time_after
from events.log import LogClock, now

SECOND = 10**9


class Machine:
    """The two clocks of a machine, in nanoseconds."""

    def __init__(self) -> None:
        self.real = 1_800_000_000 * SECOND
        self.steady = 5_000 * SECOND

    def time_ns(self) -> int:
        """What can be set."""
        return self.real

    def clock_gettime_ns(self, _: int) -> int:
        """What cannot."""
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


def test_set_back_it_goes_on_more_slowly_until_the_real_time_has_caught_up(machine: Machine) -> None:
    clock = LogClock()
    before = clock.now()
    machine.set_by(-3600)
    machine.wait(8)
    assert seconds(before, clock.now()) == 7
    machine.wait(8 * 3600)
    assert clock.now() == now()
    machine.wait(1)
    assert clock.now() == now()


def test_it_goes_on_from_what_the_log_has_said(machine: Machine) -> None:
    stood = time_after(now(), 3600)
    clock = LogClock(stood)
    assert clock.now() == stood
    machine.wait(16)
    assert seconds(stood, clock.now()) == 14
    assert LogClock(time_after(now(), -3600)).now() == now()


@pytest.mark.usefixtures("machine")
def test_a_log_whose_last_time_lies_years_ahead_is_not_followed() -> None:
    assert LogClock("2999-12-31T23:59:59.999999Z").now() == now()
    assert LogClock("9999-12-31T23:59:59.999999Z").now() == now()
    assert LogClock(time_after(now(), 300 * 24 * 3600)).now() > now()


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
            assert seconds(before, clock.now()) >= passed * 7 / 8 - 1e-5
            assert clock.now() >= now()
