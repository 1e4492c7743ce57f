"""A writer to be killed: for each seed on stdin a child opens the log, appends, and is killed at a random moment.

Started by ``test_log_kill.py`` as ``python -m tests.crash.kill_writer FOLDER``. For each round one line goes to stdout:
what the child had acknowledged (position and sum of the last) and how it ended. The children are made by fork so that
200 rounds take seconds; each opens the log, and its lock, for itself.
"""

from __future__ import annotations

import os
import random
import sys
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from pmagent.events.commit import Committer
from pmagent.events.event import Draft
from pmagent.events.evidence import log_in
from pmagent.events.log import now, opening_events
from pmagent.events.postgres.address import parse_address
from pmagent.events.postgres.store import PostgresLog
from pmagent.events.sequencer import Sequencer
from pmagent.events.store import LogStore, is_address
from tests.support.forked import Fork, serve

SEGMENT_BYTES = 20_000


def store_of(place: str) -> LogStore:
    """The log in a folder, or in PostgreSQL, where its writers on this machine share a lock."""
    if not is_address(place):
        return log_in(Path(place), SEGMENT_BYTES)
    lock = Path(parse_qs(urlsplit(place).query)["host"][0].partition(",")[0]).parent / "LOCK"
    return PostgresLog(parse_address(place), lock.parent / "blobs", lock)


def write(folder: str, seed: int, out: int) -> None:
    """Open and append until killed; each acknowledged batch is told at once."""
    chance = random.Random(seed)
    with store_of(folder).lease("a test") as lease:
        storage = lease.open()
        sequencer = Sequencer(storage.tail())
        committer = Committer(storage)
        if first := opening_events(storage, storage.log_id(), storage.recovered, sequencer, now()):
            committer.submit(first)
        for number in range(1_000_000):
            size = chance.choice((20, 200, 3000))
            raw = b'"%s"' % (b"x" * size)
            ids = [f"{seed}.{number}.{n}" for n in range(chance.randint(1, 4))]
            committer.submit([sequencer.admit(Draft("test.noted", None, raw, id, "source"), now()) for id in ids])
            durable = committer.commit()
            assert durable is not None
            os.write(out, f"{durable.tail.position} {durable.tail.sum}\n".encode())
            if chance.random() < 0.05:
                storage.settle()


def play(folder: str, line: str) -> str:
    """Fork a writer, kill it after a random time, and say what it had acknowledged."""
    seed = int(line)
    chance = random.Random(seed)
    writer = Fork(partial(write, folder, seed))
    if chance.random() < 0.8:  # kill soon after the first acknowledgement, else anywhere in opening
        writer.has_reported(1)
        writer.kill(chance.random() * 0.03)
    else:
        writer.kill(chance.random() * 0.01)
    code, lines = writer.end()
    return f"{(lines or ['0 -'])[-1]} {code}"


if __name__ == "__main__":
    serve(partial(play, sys.argv[1]))
