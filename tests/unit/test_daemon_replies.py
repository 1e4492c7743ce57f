"""What the daemon replies when an operation fails."""

from __future__ import annotations

from typing import Any, cast

import pytest

from events.errors import NotFound
from pmagent import daemon, operations
from pmagent.answer import Answer
from pmagent.host import Host
from pmagent.wire import Reply, Request
from tests.support.live import on_loop

NOBODY = cast("Host", None)


async def reply_of(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Reply:
    """The reply to an operation that raises."""

    async def fails(_host: Host, _arguments: dict[str, Any]) -> Answer:
        raise error

    monkeypatch.setitem(operations.OPERATIONS, "fails", fails)
    return await daemon._reply(NOBODY, Request("fails", {}))


@on_loop
async def test_a_bug_in_an_operation_is_its_askers_answer_and_names_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = await reply_of(monkeypatch, KeyError("a secret"))
    assert reply.failure is not None
    assert reply.failure.exit_code == 70
    assert "KeyError" in reply.failure.message
    assert "secret" not in reply.failure.message


@on_loop
async def test_what_an_operation_refuses_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = await reply_of(monkeypatch, NotFound("there is none", "make one"))
    assert reply.failure is not None
    assert (reply.failure.message, reply.failure.hint) == ("there is none", "make one")
