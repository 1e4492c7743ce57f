"""An error in the runtime's own work on an effect ends the daemon; it is never lost with the effect's task."""

from __future__ import annotations

from typing import Any

import pytest

from pmagent.actors.core.actor import Io
from pmagent.actors.core.runtime import Runtime
from pmagent.contracts.payload import Payload
from pmagent.events.event import Event
from tests.support.live import live, performing
from tests.support.toys import Done


async def test_error_in_recording_an_outcome_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def perform(event: Event, _io: Io) -> Payload:
        return Done(n=event.data.n)

    def broken(_self: Runtime, *_: Any) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(Runtime, "_finish", broken)
    monkeypatch.setattr("pmagent.actors.core.scheduler.STOP_SECONDS", 0.01)

    async def run() -> None:
        async with live(performing(perform)) as rig:
            await rig.tell("once")
            await rig.runtime.failed.wait()  # for ever: the error cancels it

    with pytest.raises(BaseExceptionGroup) as raised:
        await run()
    assert raised.value.subgroup(KeyError) is not None
