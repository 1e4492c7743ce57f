"""What nobody waits for any more, and has not left, never leaves: also where nothing else is to be sent."""

from __future__ import annotations

from contracts.hid import HidSilent
from contracts.pla import TypeText
from tests.support.pla_links import greeted
from tests.support.pla_wired import STATUS, Wired, commit

LONG = TypeText(text="x" * 1024)


def test_a_dropped_order_that_has_not_left_never_leaves() -> None:
    link = greeted()
    ticket = link.ask("commit", {"execution_id": "exec-0001", "digest": "0" * 64}, 0.0)
    link.drop(ticket, 0.0)
    assert link.to_send() == b""


def test_a_device_that_began_anew_cannot_say_that_nothing_was_typed() -> None:
    wired = Wired().prepared(LONG)
    wired.begin(commit(LONG))
    wired.until(lambda: wired.presses > 10)
    wired.core = wired.boot("ff" * 8)  # before it has told of itself it is asked what became of the order
    told = wired.perform(STATUS)
    assert isinstance(told, HidSilent)
    assert told.sent
