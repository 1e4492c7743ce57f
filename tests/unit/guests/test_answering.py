"""The line that a hook prints when its call's verdict is durable."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from pmagent.guests import dialects
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
