"""Whether the daemon answers: asked for all at once, only while somebody wants to know, and since when it does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pmagent.console.live import pulse as pulses
from pmagent.console.live.pulse import Pulse
from pmagent.service.client import HolderGone
from pmagent.service.wire import Failure, RemoteError

GONE = HolderGone("it has ended", "pmagent up")
MET = RemoteError(Failure("BadPla", "not so", "", 2))


async def _answers() -> None:
    """A daemon that is there."""


def _raising(error: Exception) -> Callable[[], Awaitable[None]]:
    async def ask() -> None:
        raise error

    return ask


@given(st.lists(st.sampled_from(["answers", "met", "gone", "hangs"]), max_size=20))
def test_its_state_is_that_of_the_last_answer_and_since_the_last_one_before(course: list[str]) -> None:
    hanging = False

    async def ask() -> None:
        if hanging:
            await anyio.sleep_forever()
        await asked()

    asked: Callable[[], Awaitable[None]] = _answers
    pulse = Pulse(ask)
    fine, since, heard = True, pulse.state.since, pulse.state.since
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pulses, "DEADLINE_SECONDS", 0.0)
        for number, what in enumerate(course):
            patch.setattr(pulses, "now", partial(str, number))
            hanging = what == "hangs"
            asked = {"met": _raising(MET), "gone": _raising(GONE)}.get(what, _answers)
            anyio.run(pulse.look)
            there = what in ("answers", "met")
            heard = str(number) if there else heard
            since = heard if there != fine else since
            fine = there
            assert (pulse.state.answers, pulse.state.since) == (fine, since)


def test_nobody_is_asked_while_nobody_wants_to_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulses, "ASK_SECONDS", 0.0)
    asked = anyio.Event()

    async def ask() -> None:
        asked.set()

    async def course() -> None:
        pulse = Pulse(ask)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pulse.run)
            await anyio.wait_all_tasks_blocked()
            assert not asked.is_set()
            pulse.want()
            await asked.wait()
            tasks.cancel_scope.cancel()

    anyio.run(course)
