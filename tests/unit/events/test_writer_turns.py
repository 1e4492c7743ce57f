"""The writer thread and the event loop take turns; no wake-up is lost between them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from pmagent.events.commit import Durable
from pmagent.events.errors import OutcomeUnknown
from pmagent.events.event import Tail
from pmagent.events.sequencer import Sequencer
from tests.support.logs import draft
from tests.support.memory_storage import MemoryStorage
from tests.support.one_writer import Log


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


class _Elsewhere(MemoryStorage):
    """A storage on another machine; ``begun``: it was given a second batch."""

    is_local = False

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()

    def append_batch(self, expected: Tail, lines: Sequence[bytes], tail: Tail) -> None:
        if expected.position:
            self.begun.set()
        super().append_batch(expected, lines, tail)


async def test_a_storage_elsewhere_gets_the_next_batch_while_the_loop_hands_out_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage, handed = _Elsewhere(), Log._durable

    def hand_out(log: Log, durable: Durable) -> None:
        assert storage.begun.wait(60), "the thread waits for the loop"
        handed(log, durable)

    monkeypatch.setattr(Log, "_durable", hand_out)
    monkeypatch.setattr("pmagent.events.commit.Committer.overlaps", property(lambda _: True))
    log = Log(storage, Sequencer(Tail()))
    appended = await asyncio.gather(*(log.append(draft(n)) for n in range(1, 9)))
    assert [event.position for event in appended] == [*range(1, 9)]
    await log.aclose()
    assert storage.tail().batch == 2


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
