"""A writer on a host of its own: ``far_writer ADDRESS FOLDER`` appends from many sides until its input ends, and prints
the id of each event that was acknowledged, and when; with ``read`` behind it prints the ids of all events of the
verified log."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from pmagent.events.log import now, opening_events
from pmagent.events.postgres.address import parse_address
from pmagent.events.postgres.store import PostgresLog
from pmagent.events.reader import events
from pmagent.events.sequencer import Sequencer
from tests.support.logs import draft
from tests.support.one_writer import Log

WRITERS = 64


async def write(store: PostgresLog) -> None:
    """Append from ``WRITERS`` sides."""
    over = asyncio.Event()

    async def append(log: Log, number: int) -> None:
        for count in range(1_000_000):
            is_last = over.is_set()
            event = await log.append(draft(number * 1_000_000 + count))
            os.write(1, f"{event.id} {time.monotonic_ns()}\n".encode())
            if is_last:
                return

    with store.lease("a test") as lease:
        storage = lease.open()
        sequencer = Sequencer(storage.tail())
        first = opening_events(storage, storage.log_id(), None, sequencer, now())
        log = Log(storage, sequencer)
        log.append_events(first)
        async with asyncio.TaskGroup() as writers:
            for number in range(1, WRITERS + 1):
                writers.create_task(append(log, number))
            await asyncio.to_thread(sys.stdin.read)
            over.set()
        await log.aclose()


def read(store: PostgresLog) -> None:
    """Verify the log, and print its ids."""
    assert store.verify(decode=True).ok
    reader = store.reader()
    sys.stdout.writelines(f"{event.id}\n" for event in events(reader))
    reader.close()


if __name__ == "__main__":
    log = PostgresLog(parse_address(sys.argv[1]), Path(sys.argv[2]))
    if len(sys.argv) > 3:
        read(log)
    else:
        asyncio.run(write(log))
