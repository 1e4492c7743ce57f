"""Attempts that workers on other hosts make: the moments that decide, one statement each."""

from __future__ import annotations

from typing import Any

from pmagent.actors.core.claims import (
    Adopt,
    Ask,
    AskStop,
    Begin,
    Claim,
    End,
    Ended,
    Extend,
    Hold,
    Insert,
    Keep,
    Lose,
    Offer,
    Report,
    Row,
    Withdraw,
)
from pmagent.events.lease import SECOND

L = 30 * SECOND


def at(seconds: float) -> int:
    """BOOTTIME of a test that began at 1,000."""
    return int((1000 + seconds) * SECOND)


def claimed(renewals: int = 0, **fields: Any) -> Row:
    return Row("claimed", 1, "w.1", renewals, **fields)


def running() -> Claim:
    """A claim that was made at 0 and known at 1."""
    claim = Claim("w.1", L)
    assert claim.ask(at(0)) == [Ask(at(0))]
    assert claim.claimed(at(0), claimed(), at(1)) == [Begin(at(30))]
    return claim


def test_an_attempt_is_offered_until_there_is_a_row() -> None:
    offer = Offer(1, L)
    assert offer.saw(None, at(0)) == [Insert(1)]
    assert offer.saw(Row("open", 1), at(1)) == []


def test_a_later_holder_and_one_that_raised_its_epoch_offer_anew() -> None:
    assert Offer(2, L).saw(Row("open", 1), at(0)) == [Adopt(2)]
    assert Offer(2, L).saw(Row("open", 3), at(0)) == [Adopt(2)], "its offer was made in a history that is lost"
    offer = Offer(1, L)
    offer.epoch = 2
    assert offer.saw(Row("open", 1), at(0)) == [Adopt(2)]


def test_a_pause_holds_what_nobody_has_claimed() -> None:
    offer = Offer(1, L)
    offer.held = True
    assert offer.saw(None, at(0)) == []
    assert offer.saw(Row("open", 1), at(0)) == [Hold()]
    assert offer.saw(Row("open", 0), at(1)) == []
    assert offer.saw(claimed(), at(2)) == []
    offer.held = False
    assert offer.saw(Row("open", 0), at(3)) == [Adopt(1)]


def test_a_silent_worker_is_lost_after_its_lease_and_a_tenth() -> None:
    offer = Offer(1, L)
    offer.saw(claimed(), at(0))
    assert offer.saw(claimed(), at(32.9)) == []
    assert offer.saw(claimed(), at(33)) == [Lose("w.1", 0)]
    assert offer.lost() == [Ended("lost")]
    assert offer.saw(Row("done", 1, "w.1", result="late"), at(34)) == []


def test_each_renewal_counts_anew_also_on_another_timeline() -> None:
    for sign in (claimed(1), claimed(timeline=2)):
        offer = Offer(1, L)
        offer.saw(claimed(), at(0))
        offer.saw(sign, at(20))
        assert offer.saw(sign, at(52)) == []


def test_what_is_only_read_ends_nothing_but_a_result() -> None:
    assert Offer(1, L).saw(Row("lost", 1), at(0)) == [Withdraw()]
    assert Offer(1, L).saw(Row("lost", 1, "w.1", 3), at(0)) == [Lose("w.1", 3)]
    assert Offer(1, L).saw(Row("done", 1, "w.1", result="r"), at(0)) == [Ended("done", "r")]


def test_one_that_is_taken_back_is_withdrawn_or_ended_by_its_worker() -> None:
    offer = Offer(1, L)
    offer.stop()
    assert offer.saw(None, at(0)) == [Withdraw()], "an offer may still be on its way"
    assert offer.saw(Row("open", 1), at(0)) == [Withdraw()]
    assert offer.saw(claimed(), at(0)) == [AskStop()]
    assert offer.saw(claimed(stop=True), at(1)) == []
    assert offer.withdrawn() == [Ended("withdrawn")]
    assert offer.withdrawn() == []


def test_a_claim_that_is_known_too_late_is_never_begun() -> None:
    claim = Claim("w.1", L)
    claim.ask(at(0))
    assert claim.claimed(at(0), claimed(), at(27)) == [Report("unstarted", at(27))]
    claim = Claim("w.1", L)
    claim.ask(at(0))
    assert claim.claimed(at(0), claimed(stop=True), at(1)) == [Report("unstarted", at(1))]


def test_a_claim_in_doubt_is_renewed_and_counts_from_that() -> None:
    claim = Claim("w.1", L)
    claim.ask(at(0))
    claim.unknown(at(0), at(10))
    assert claim.claimed(at(0), claimed(), at(10)) == [], "the answer to a statement that is in doubt comes too late"
    assert claim.timer(at(11)) == [Keep(at(11))]
    assert claim.kept(at(11), claimed(1), at(12)) == [Begin(at(41))]
    assert claim.kept(at(11), claimed(1), at(13)) == [], "once"


def test_a_claim_in_doubt_that_was_not_made_is_over() -> None:
    claim = Claim("w.1", L)
    claim.ask(at(0))
    claim.unknown(at(0), at(10))
    claim.timer(at(11))
    assert claim.gone(at(11), Row("open", 1)) == []
    assert claim.phase == "over"


def test_a_claim_in_doubt_for_a_lease_is_given_up() -> None:
    claim = Claim("w.1", L)
    claim.ask(at(0))
    claim.unknown(at(0), at(10))
    assert claim.timer(at(30)) == []
    assert claim.phase == "over"


def test_a_box_runs_as_long_as_the_claim_is_renewed() -> None:
    claim = running()
    assert claim.timer(at(10)) == [Keep(at(10))]
    assert claim.kept(at(10), claimed(1), at(19)) == [Extend(at(40))]
    claim.timer(at(20))
    claim.unknown(at(20), at(30))
    assert End() in claim.timer(at(40))


def test_a_worker_that_is_asked_to_ends_its_box() -> None:
    claim = running()
    claim.timer(at(10))
    assert claim.kept(at(10), claimed(1, stop=True), at(11)) == [End()]


def test_a_result_is_told_until_it_is_acknowledged_and_once() -> None:
    claim = running()
    assert claim.ended("r", at(5)) == [Report("r", at(5))]
    claim.unknown(at(5), at(15))
    assert claim.timer(at(16)) == [Report("r", at(16))]
    assert claim.gone(at(16), Row("done", 1, "w.1", result="r")) == []
    assert claim.told == "done"


def test_the_result_of_a_lost_attempt_is_refused() -> None:
    claim = running()
    claim.ended("r", at(5))
    claim.gone(at(5), Row("lost", 1, "w.1"))
    assert claim.told == "gone"


def test_a_box_whose_claim_is_gone_is_ended() -> None:
    claim = running()
    claim.timer(at(10))
    assert claim.gone(at(10), Row("lost", 1, "w.1")) == [End()]
