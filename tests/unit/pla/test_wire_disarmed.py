"""From the wish to disarm on nothing is ordered, and nothing keeps the device armed, whatever becomes of the line."""

from __future__ import annotations

from collections.abc import Callable

from pmagent.contracts.hid import HidArmed, HidEnded, HidSilent
from pmagent.contracts.pla import TypeText
from pmagent.firmware.core import LEASE_MAX_MS
from tests.support.pla_wired import DISARM, HI, PING, Wired, arm, commit, prepare

LONG = TypeText(text="x" * 1024)


def without(op: str, count: int, then: Callable[[bytes], bytes] = bytes) -> Callable[[bytes], bytes]:
    """A line that loses the first ``count`` requests ``op``."""
    left = count

    def carry(data: bytes) -> bytes:
        nonlocal left
        kept = b""
        for line in then(data).splitlines(keepends=True):
            if b'"op":"%s"' % op.encode() in line and left:
                left -= 1
            else:
                kept += line
        return kept

    return carry


def test_a_disarm_that_is_lost_ends_the_typing_with_the_lease() -> None:
    wired = Wired().prepared(LONG)
    typing = wired.begin(commit(LONG))
    wired.until(lambda: wired.presses > 10)
    wired.to_device = without("disarm", 3)
    since = wired.now
    assert isinstance(wired.perform(DISARM), HidSilent)
    wired.until(lambda: typing in wired.outcomes)
    ended = wired.outcomes[typing]
    assert isinstance(ended, HidEnded)
    assert (ended.state, ended.code) == ("ABORTED", "LEASE")
    assert wired.now - since < LEASE_MAX_MS / 1000 + 1.5


def test_a_device_that_has_not_said_that_it_is_disarmed_is_not_armed() -> None:
    wired = Wired().prepared(LONG)
    typing = wired.begin(commit(LONG))
    wired.until(lambda: wired.presses > 10)
    wired.to_device = without("disarm", 3)
    wired.perform(DISARM)
    armed, refused = wired.sent("arm"), wired.perform(arm())
    assert isinstance(refused, HidSilent)
    assert (refused.sent, wired.sent("arm")) == (False, armed), "what is typed would go on with it"
    wired.until(lambda: typing in wired.outcomes)
    over = wired.now
    wired.until(lambda: wired.now > over + 2)
    assert isinstance(wired.perform(arm()), HidArmed), "it has said that its lease is over"


def test_arming_waits_for_the_answer_to_disarming() -> None:
    wired = Wired().linked()
    wired.begin(DISARM)
    assert isinstance(wired.perform(arm()), HidArmed)


def test_an_order_that_waits_when_it_is_to_be_disarmed_never_leaves() -> None:
    wired = Wired().prepared(HI)
    wired.to_device = without("ping", 1, without("disarm", 1))
    wired.begin(PING)
    wired.step()
    ordered = wired.begin(commit(HI))
    wired.step()
    wired.perform(DISARM)
    wired.until(lambda: ordered in wired.outcomes)
    assert (wired.sent("commit"), wired.presses) == (0, 0)
    outcome = wired.outcomes[ordered]
    assert isinstance(outcome, HidSilent)
    assert not outcome.sent


def test_after_the_answer_to_disarming_it_may_be_prepared_again() -> None:
    wired = Wired().linked()
    wired.perform(DISARM)
    assert not isinstance(wired.perform(prepare(HI)), HidSilent)
