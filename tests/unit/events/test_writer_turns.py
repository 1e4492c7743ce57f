"""The writer thread and the event loop take turns; no wake-up is lost between them."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pmagent.events.errors import OutcomeUnknown
from pmagent.events.event import Tail
from pmagent.events.log import Log
from pmagent.events.memory import MemoryStorage
from pmagent.events.sequencer import Sequencer
from tests.support.logs import draft


class _SetJustAfterTimeout(threading.Event):
    """An event whose every other timed wait ends in vain just before it is set, as a timed wait may."""

    _vain = False

    def wait(self, timeout: float | None = None) -> bool:
        set_in_time = super().wait()
        self._vain = timeout is not None and not self._vain
        return set_in_time and not self._vain


def test_wake_up_that_comes_as_a_wait_for_quiet_ends_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async def append_twice() -> list[int]:
        monkeypatch.setattr("pmagent.events.writer.threading.Event", _SetJustAfterTimeout)
        log = Log(MemoryStorage(), Sequencer(Tail()))
        monkeypatch.undo()
        first = await log.append(draft(1))  # the thread now waits for quiet, with a timeout
        second = await asyncio.wait_for(log.append(draft(2)), 10)
        await log.aclose()
        return [first.position, second.position]

    assert asyncio.run(append_twice()) == [1, 2]


async def test_failure_to_hand_out_what_is_durable_fails_the_log_and_hangs_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: Log, _durable: object) -> None:
        raise RuntimeError
    seen: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: seen.append(context["exception"]))
    monkeypatch.setattr(Log, "_durable", broken)
    log = Log(MemoryStorage(), Sequencer(Tail()))
    with pytest.raises(OutcomeUnknown, match="RuntimeError"):
        await asyncio.wait_for(log.append(draft(1)), 10)
    assert [type(error) for error in seen] == [RuntimeError]
    with pytest.raises(OutcomeUnknown):
        await log.aclose()
