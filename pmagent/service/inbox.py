"""Carrying out what is asked for on other machines, while this process holds the log (docs/design.md §11.6), and
telling those who list the database's logs how this one stands (§11.7)."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Final

import anyio
import anyio.to_thread

from pmagent.clean import json_bytes
from pmagent.events.errors import PmagentError
from pmagent.events.storage import Asked, Inbox
from pmagent.log.listed import Said
from pmagent.service.client import FAR_BYTES_MAX
from pmagent.service.daemon import failure_of, reply_to
from pmagent.service.far import permitted
from pmagent.service.host import Host, asker
from pmagent.service.requests import FAR
from pmagent.service.wire import BadMessage, Request

LOOK_SECONDS: Final = 1.0
"""The holder looks for requests so often, also where no notification came."""

SAY_SECONDS: Final = 10.0
"""So often the holder says how the log stands where nothing has changed: it lives."""

ANSWER_TRIES: Final = 60
"""So often an answer is sent; then the asker is left with an unknown outcome."""


async def serve_far(host: Host) -> None:
    """Carry out what is asked for on other machines, while this one holds the log."""
    if (lease := host.storage.lease) is None:
        return
    with closing(lease.inbox()) as taking, closing(lease.inbox()) as answering:
        server = _Server(host, answering)
        said, when = "", 0.0
        async with anyio.create_task_group() as tasks:
            while True:
                try:
                    asked = await anyio.to_thread.run_sync(taking.take, LOOK_SECONDS)
                except PmagentError:  # the database is away; if that lasts, the log tells
                    await anyio.sleep(LOOK_SECONDS)
                    continue
                for one in asked:
                    tasks.start_soon(server.serve, one)
                standing, now = _standing(host), anyio.current_time()
                if standing != said or now - when > SAY_SECONDS:
                    with suppress(PmagentError):  # as above
                        await anyio.to_thread.run_sync(taking.say, standing)
                        said, when = standing, now


def _standing(host: Host) -> str:
    """How the log stands, in a line for lists."""
    told = host.standing.of(host.runtime.engine, host.storage.log_id(), host.tail, host.halted_projections)
    alerts = told["alerts"]
    others = alerts["urgent"] + alerts["bad"] + alerts["warn"]
    said = Said(told["mode"], told["paused"] is not None, alerts["request"], others, len(told["jobs"]))
    return json_bytes(said).decode()


class _Server:
    def __init__(self, host: Host, answering: Inbox) -> None:
        self._host = host
        self._answering = answering
        self._turn = anyio.Lock()
        self._reading = anyio.Lock()
        self._at_work: set[str] = set()

    async def serve(self, asked: Asked) -> None:
        if asked.id in self._at_work:  # the epoch was raised meanwhile
            return
        self._at_work.add(asked.id)
        try:
            reply = await self._reply(asked)
            for _ in range(ANSWER_TRIES):
                try:
                    async with self._turn:
                        await anyio.to_thread.run_sync(self._answering.answer, asked.id, reply)
                    return
                except PmagentError:
                    await anyio.sleep(LOOK_SECONDS)
        finally:
            self._at_work.discard(asked.id)

    async def _reply(self, asked: Asked) -> str:
        asker.set(FAR)
        try:
            async with self._reading:  # one in a turn of the event loop, however many have come
                arguments = permitted(asked)
            reply = await reply_to(self._host, Request(asked.operation, arguments))
        except PmagentError as error:
            reply = failure_of(error)
        text = json_bytes(reply).decode()
        if len(text.encode()) > FAR_BYTES_MAX:
            what = f"the answer is longer than {FAR_BYTES_MAX} bytes, and was not sent; it was carried out"
            return json_bytes(failure_of(BadMessage(what, "ask for less at once, or there"))).decode()
        return text
