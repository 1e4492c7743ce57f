"""The performers of the HID link's requests: each is a conversation over the one line (docs/design.md §16.6)."""

from __future__ import annotations

from collections.abc import Callable

from pmagent.actors.core.actor import Io, Performers
from pmagent.actors.pla.line.holding import Line
from pmagent.contracts.hid import (
    HidArmRequested,
    HidCommitRequested,
    HidDisarmRequested,
    HidLeaseRequested,
    HidPingRequested,
    HidPrepareRequested,
    HidStatusRequested,
)
from pmagent.contracts.payload import Payload
from pmagent.contracts.pla import Action
from pmagent.events.event import Event


def pla_performers(line: Line, plain: Callable[[str], Action | None]) -> Performers:
    """The performers over ``line``. ``plain`` gives the action of a masked request by its digest, None when it is not
    in memory (any more)."""

    async def perform(event: Event, io: Io) -> Payload:
        return await line.perform(event, None, io.now())

    async def due(event: Event, io: Io) -> Payload:
        asked: HidPingRequested | HidStatusRequested = event.data
        await io.sleep_until(asked.at)
        return await perform(event, io)

    async def prepare(event: Event, io: Io) -> Payload:
        asked: HidPrepareRequested = event.data
        return await line.perform(event, plain(asked.digest) if asked.masked else None, io.now())

    return {
        HidArmRequested: perform, HidDisarmRequested: perform, HidCommitRequested: perform,
        HidPrepareRequested: prepare, HidPingRequested: due, HidStatusRequested: due, HidLeaseRequested: perform,
    }
