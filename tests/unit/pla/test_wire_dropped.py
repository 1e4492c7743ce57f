"""A request that has not left, and that nobody waits for any more, never leaves, even if nothing else is to be sent."""

from __future__ import annotations

from typing import Any, Final

from pmagent.actors.pla.wire.messages import Op, Unanswered
from pmagent.contracts.hid import HidSilent
from pmagent.contracts.pla import TypeText
from tests.support.cases import each
from tests.support.pla_links import greeted
from tests.support.pla_wired import STATUS, Wired, commit

LONG = TypeText(text="x" * 1024)


def test_a_dropped_order_that_has_not_left_never_leaves() -> None:
    link = greeted()
    ticket = link.ask("commit", {"execution_id": "exec-0001", "digest": "0" * 64}, 0.0)
    link.drop(ticket, 0.0)
    assert link.to_send() == b""


ORDERS: Final[list[tuple[Op, dict[str, Any]]]] = [
    ("commit", {"execution_id": "exec-0001", "digest": "0" * 64}), ("arm", {"lease_ms": 2000}), ("ping", {}),
]  # fmt: skip


@each("op, fields", ORDERS)
def test_an_order_whose_line_is_still_here_when_it_is_to_be_disarmed_never_leaves(
    op: Op, fields: dict[str, Any]
) -> None:
    link = greeted()
    ticket = link.ask(op, fields, 0.0)
    link.ask("disarm", {}, 0.0)
    assert b'"op":"disarm"' in link.to_send()
    ((told, reply),) = link.answers()
    assert told == ticket
    assert isinstance(reply, Unanswered)
    assert not reply.sent


def test_a_device_that_began_anew_cannot_say_that_nothing_was_typed() -> None:
    wired = Wired().prepared(LONG)
    wired.begin(commit(LONG))
    wired.until(lambda: wired.presses > 10)
    wired.core = wired.boot("ff" * 8)  # before it has told of itself it is asked what became of the order
    told = wired.perform(STATUS)
    assert isinstance(told, HidSilent)
    assert told.sent
