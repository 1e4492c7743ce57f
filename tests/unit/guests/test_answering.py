"""The line that a hook prints when its call's verdict is durable."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from pmagent.events.errors import NotFound
from pmagent.events.event import Event
from pmagent.guests import dialects, operations
from pmagent.guests.answering import settled
from pmagent.guests.gate import Gate
from pmagent.guests.messages import Message
from tests.support.guests_alone import Alone


def asked(line: str, mode: Any = "enforce") -> tuple[Message, list[Any]]:
    """A hook's message, and the events of its call."""
    alone = Alone()
    alone.start()
    before = len(alone.events)
    alone.ask(line, mode=mode)
    return Message(v=1, harness="script", event="", mode=mode, payload={}), alone.events[before:]


def test_a_verdict_is_printed() -> None:
    for line, code in (("ls a", 0), ("rm a", 2)):
        printed = settled(*asked(line), holds=True)
        assert printed is not None
        assert printed.exit == code
    assert settled(*asked("deploy a"), holds=True) is None, "operators decide"


def test_a_process_that_no_longer_holds_the_log_lets_nothing_through() -> None:
    for line in ("ls a", "rm a", "deploy a"):
        printed = settled(*asked(line), holds=False)
        assert printed is not None
        assert (printed.exit, json.loads(printed.stdout)["answer"]) == (2, "deny")
    assert settled(*asked("ls a", "observe"), holds=False) == dialects.SILENT


async def test_an_approval_lets_nothing_through_where_the_lease_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    message, events = asked("deploy a")

    async def approved(*_: Any) -> str:
        return "allow"

    gate = Gate()
    monkeypatch.setattr(gate, "_waited", approved)
    for live, code in ((True, 0), (False, 2)):
        host: Any = SimpleNamespace(runtime=SimpleNamespace(may_start=lambda live=live: live))
        printed = await gate._held(host, message, "s", events, asyncio.Future, lambda: False)
        assert printed.exit == code


async def test_approvals_that_are_decided_while_a_list_is_made_do_not_stand_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alone = Alone()
    alone.start()
    alone.ask("deploy a")
    durable = {event.position: event for event in alone.events}

    async def caught_up() -> None:
        alone.ask("deploy b")  # decided, and not in the log yet

    def read_event(_: object, position: int) -> Event:
        if position not in durable:
            raise NotFound(f"no event {position}")
        return durable[position]

    monkeypatch.setattr(operations, "read_event", read_event)
    runtime = SimpleNamespace(engine=alone.engine, intake=SimpleNamespace(blob=None), caught_up=caught_up)
    host: Any = SimpleNamespace(runtime=runtime, layout=SimpleNamespace(store=None))
    listed = (await operations.approvals(host, {})).document["approvals"]
    assert [one["text"] for one in listed] == ["deploy a"]
    assert len(operations.state_of(alone.engine).approvals) == 2
