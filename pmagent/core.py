"""The core as a library: a log, actors that decide, effects, replay, and none of pmagent's own areas (docs/core.md)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

from pmagent.actors.core.actor import Actor, AnyActor, Io, Performers
from pmagent.actors.core.engine import Engine, Output
from pmagent.actors.core.intake import Intake
from pmagent.actors.core.runtime import Runtime
from pmagent.contracts.payload import Effect, Payload, event_type
from pmagent.events.event import Event, Tail
from pmagent.events.evidence import log_in
from pmagent.events.log import opening_events
from pmagent.events.reader import events
from pmagent.events.redact import Redactor, secrets_in
from pmagent.events.sequencer import Sequencer
from pmagent.events.store import LogStore
from pmagent.replay.replayer import fold_log, replay_log
from pmagent.service.io import RealIo, read_event
from pmagent.service.lease import fenced

__all__ = ["Actor", "Effect", "Event", "Io", "Payload", "event_type", "events", "live", "log_in", "replay_log"]


@asynccontextmanager
async def live(
    store: LogStore, actors: Sequence[AnyActor], performers: Performers, *, role: str = "program",
    workspace: Path | None = None,
) -> AsyncIterator[Runtime]:
    """Hold the log's lease, recover, and be live until the block ends, which is an orderly stop.

    ``performers``: request type -> what performs it; ``workspace``: the folder that they are given (default: the
    current one). ``role`` names the writer to those who find the log held. Effects that an earlier process left open
    begin again if they are repeatable, and end as interrupted otherwise. Raises LogLocked, CorruptLog, HistoryError,
    OSError; OutcomeUnknown when the log failed meanwhile, EngineBroken when the engine did.
    """
    with store.lease(role) as lease, closing(lease.open()) as storage, fenced(storage.lease) as held:
        blobs = store.blobs()
        blobs.clear_unfinished()
        engine = Engine(actors, Sequencer(Tail()))
        fold_log(storage, engine, blobs=blobs)
        intake = Intake(Redactor(secrets_in(os.environ)), blobs)
        io = RealIo((workspace or Path()).absolute(), intake, partial(read_event, store), storage.tail().time)
        first = opening_events(storage, storage.log_id(), storage.recovered, engine.sequencer, io.now())
        unfinished = engine.effects.unfinished()
        completed = engine.complete(io.now())
        runtime = Runtime(engine, storage, performers, intake, io, held.live if held is not None else None)
        for output in (Output(first, [], []), completed):  # in the order of their positions
            if output.events:
                runtime.submit(output)
        async with runtime.run(unfinished) as tasks:
            if held is not None:
                tasks.start_soon(held.keep, runtime)
            yield runtime
