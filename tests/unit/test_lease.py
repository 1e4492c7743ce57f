"""The lease of a log's holder: the moments that decide, one statement each."""

from __future__ import annotations

from pmagent.events.lease import SECOND, Act, Die, Head, Hold, Lapse, Lease, Release, Renew, Take

L = 30 * SECOND


def at(seconds: float) -> int:
    """BOOTTIME of a test that began at 1,000."""
    return int((1000 + seconds) * SECOND)


def head(epoch: int = 1, renewals: int = 0, *, holder: str = "a", released: bool = False, timeline: int = 1) -> Head:
    return Head(epoch, holder, renewals, released, L, timeline)


def holder(*, now: float = 0, released: bool = True) -> Lease:
    """One that has taken over at ``now``."""
    lease = Lease("b")
    actions = lease.saw(head(released=released), at(now), at(now), locked=True)
    if not released:
        actions = lease.saw(head(), at(now + 30), at(now + 30), locked=True)
        now += 30
    assert actions == [Take(1, at(now))]
    lease.took(head(released=released), at(now), at(now + 1))
    return lease


def test_a_lease_counts_from_sending_and_is_live_until_a_tenth_is_left() -> None:
    lease = holder()
    assert lease.live(at(26.9))
    assert not lease.live(at(27))
    assert lease.append(at(5))
    lease.answered(at(5), at(20))
    assert lease.live(at(31.9))
    assert not lease.live(at(32))


def test_a_late_acknowledgement_starts_nothing() -> None:
    lease = holder()
    assert lease.append(at(1))
    assert [action for action in lease.answered(at(1), at(60)) if isinstance(action, Act)] == []
    assert not lease.live(at(60))


def test_a_lease_that_passed_unnoticed_says_so_before_it_is_live_again() -> None:
    """A process that stood still may ask at 28 whether it is live, and hold what it wanted to start; then the answer
    comes, ahead of the timer."""
    lease = holder()
    assert lease.append(at(20))
    assert not lease.live(at(28))
    assert [one for one in lease.answered(at(20), at(28)) if isinstance(one, Lapse | Act)] == [Lapse(over=False), Act()]
    assert lease.append(at(29))
    assert [one for one in lease.answered(at(29), at(60)) if isinstance(one, Lapse | Act)] == [Lapse(over=True)]


def test_an_answer_to_something_else_changes_nothing() -> None:
    lease = holder()
    assert lease.append(at(5))
    assert lease.answered(at(4), at(6)) == []
    assert not lease.append(at(6)), "the answer to the first is still waited for"
    lease.answered(at(5), at(6))
    assert lease.answered(at(5), at(7)) == []


def test_a_standby_takes_over_when_the_holder_has_been_silent_for_a_lease() -> None:
    lease = Lease("b")
    assert lease.saw(head(), at(0), at(1)) == []
    assert lease.saw(head(), at(30.9), at(32)) == []
    assert lease.saw(head(), at(31), at(32)) == [Take(1, at(32))]


def test_a_sign_of_life_counts_anew_also_on_another_timeline() -> None:
    for sign in (head(renewals=1), head(timeline=2)):
        lease = Lease("b")
        lease.saw(head(), at(0), at(1))
        assert lease.saw(sign, at(31), at(32)) == []


def test_an_earlier_epoch_is_watched_too_since_a_later_one_may_be_lost() -> None:
    lease = Lease("b")
    lease.saw(head(2, holder="c"), at(0), at(0))
    lease.saw(head(), at(5), at(5))
    assert lease.saw(head(), at(35), at(35)) == [Take(1, at(35))]


def test_a_session_that_ended_counts_only_where_it_was_seen_to_live() -> None:
    lease = Lease("b")
    assert lease.saw(head(), at(0), at(0), locked=False) == []
    lease.saw(head(), at(1), at(1))
    assert lease.saw(head(timeline=2), at(2), at(2), locked=False) == []
    assert lease.saw(head(), at(3), at(3), locked=False) == [Take(1, at(3))]


def test_who_takes_over_appends_at_once_and_acts_when_the_old_lease_is_over() -> None:
    lease = holder(released=False)
    assert lease.phase == "waiting"
    assert not lease.live(at(32.9))
    assert lease.append(at(31.5))
    lease.answered(at(31.5), at(32))
    assert Act() in lease.timer(at(33))
    assert lease.live(at(33))


def test_what_was_renewed_behind_the_last_look_is_waited_for() -> None:
    lease = Lease("b")
    lease.saw(head(), at(0), at(0))
    lease.saw(head(), at(30), at(30))
    lease.took(head(renewals=1), at(30), at(31))
    lease.append(at(40))
    lease.answered(at(40), at(63.9))
    assert lease.phase == "waiting"
    assert Act() in lease.timer(at(64))


def test_a_take_over_whose_answer_was_lost_is_asked_for_until_it_is_acknowledged() -> None:
    lease = Lease("b")
    lease.saw(head(released=True), at(0), at(0))
    lease.unknown(at(0), at(10))
    mine = head(2, holder="b")
    assert lease.saw(mine, at(11), at(11)) == [Take(1, at(11))], "what is read may stand on one server alone"
    assert Hold(2, raised=False) in lease.took(mine, at(11), at(12))


def test_an_append_in_doubt_raises_the_epoch_until_the_outage_is_too_long() -> None:
    lease = holder()
    lease.append(at(5))
    assert Take(2, at(15)) in lease.unknown(at(5), at(15))
    assert not lease.append(at(16))
    assert Hold(3, raised=True) in lease.took(head(2, holder="b"), at(15), at(17))
    lease.append(at(20))
    lease.unknown(at(20), at(30))
    lease.unknown(at(30), at(40))
    assert Die("unknown") in lease.timer(at(91))


def test_a_renewal_in_doubt_is_sent_again() -> None:
    lease = holder()
    (renewal,) = (action for action in lease.timer(at(10)) if isinstance(action, Renew))
    assert lease.unknown(renewal.sent, at(12)) == []
    assert Renew(2, at(13)) in lease.timer(at(13))


def test_a_lease_lapses_and_is_over() -> None:
    lease = holder()
    lease.append(at(5))
    assert lease.timer(at(27)) == [Lapse(over=False)]
    assert lease.timer(at(30)) == [Lapse(over=True)]
    assert Act() in lease.answered(at(5), at(31)), "nobody has taken over"


def test_a_deposed_holder_ends() -> None:
    lease = holder()
    lease.append(at(5))
    assert lease.refused(at(5), head(3, holder="c"), at(6)) == [Lapse(over=True), Die("deposed")]


def test_a_log_is_released_when_nothing_runs_and_never_while_an_older_lease_may_be_live() -> None:
    lease = holder()
    lease.stop(at(2))
    assert not lease.live(at(2))
    assert Release(2, at(3)) in lease.idle(at(3))
    assert Die("released") in lease.answered(at(3), at(4))
    lease = holder(released=False)
    lease.stop(at(31))
    assert lease.idle(at(32)) == [Lapse(over=True), Die("stopped")]
