"""Buckets and seats: what is let through, when the next one is, and that memory stays bounded."""

from __future__ import annotations

from contextlib import ExitStack

from pmagent.console.auth.limits import Bucket, Seats
from tests.support.entrances import Clock


def test_a_burst_is_let_through_and_then_one_at_a_time() -> None:
    clock = Clock(0.0)
    bucket = Bucket(0.5, 3, clock)
    assert [bucket.take("a") for _ in range(5)] == [0.0, 0.0, 0.0, 2.0, 2.0]
    clock.now = 1.0
    assert bucket.take("a") == 1.0
    clock.now = 2.0
    assert [bucket.take("a"), bucket.take("a")] == [0.0, 2.0]


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    clock = Clock(0.0)
    bucket = Bucket(1.0, 2, clock)
    bucket.take()
    clock.now = 1_000.0
    assert [bucket.take() == 0.0 for _ in range(3)] == [True, True, False]


def test_keys_do_not_take_from_one_another() -> None:
    bucket = Bucket(1.0, 1, Clock(0.0))
    assert [bucket.take(key) for key in ("a", "b", "a")] == [0.0, 0.0, 1.0]


def test_more_keys_than_fit_are_refused_until_others_have_filled_up() -> None:
    clock = Clock(0.0)
    bucket = Bucket(1.0, 2, clock, keys=3)
    assert [bucket.take(key) for key in "abcd"] == [0.0, 0.0, 0.0, 1.0]
    assert len(bucket) == 3
    bucket.take("a")
    clock.now = 1.0
    assert bucket.take("d") == 0.0
    assert len(bucket) == 2  # b and c were full again, and forgotten
    assert bucket.take("a") == 0.0, "it was not forgotten, and not reset"
    assert bucket.take("a") == 1.0


def test_seats_are_limited_for_each_and_for_all_and_come_back() -> None:
    seats = Seats(each=2, overall=3)
    with ExitStack() as stack:
        taken = [stack.enter_context(seats.seat(key)) for key in ("a", "a", "a", "b", "b")]
        assert taken == [True, True, False, True, False]
        assert len(seats) == 3
    assert len(seats) == 0
    with seats.seat("b") as free:
        assert free
