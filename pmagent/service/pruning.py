"""Blobs that are given up with the jobs that named them (``pmagent prune``).

They are removed while the log is held and nothing is live: content is shared, so a task that ends meanwhile could name
a blob that is about to go. The event that gives them up is durable first; a start that finds it unfinished finishes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import msgspec

from pmagent.contracts.blobs import NEEDLES, blobs_named, payload_blob
from pmagent.contracts.control import Pruned, PruneEnded
from pmagent.events.event import StoredEvent
from pmagent.events.reader import matching_runs
from pmagent.events.storage import Blobs, StorageReader
from pmagent.projections.core.documents import pruned_jobs


class _OfRun(msgspec.Struct):
    run_id: str = ""


_of_run = msgspec.json.Decoder(_OfRun)


def droppable(
    storage: StorageReader, blobs: Blobs, jobs: Collection[str], before: Collection[str], until: int
) -> set[str]:
    """The blobs that nobody needs when ``jobs`` are given up as of position ``until``; ``before``: the jobs that have
    been given up already. A payload that lies in a blob is part of the log, and always needed. Raises CorruptLog."""
    given_up, needed = set[str](), set[str]()
    gone = {*jobs, *before}
    for run, _ in matching_runs(storage, 1, storage.tail().position, (list(NEEDLES),)):
        for event in run:
            named = {blob.sha256 for blob in blobs_named(event, blobs)}
            if not named:
                continue
            needed.add(payload_blob(event))
            of = jobs_of(event).intersection(gone)
            if of.isdisjoint(jobs):
                needed.update(() if of else named)
            elif event.position > until:
                needed |= named
            else:
                given_up |= named
    return given_up - needed


def jobs_of(event: StoredEvent) -> set[str]:
    """The ids of the jobs that an event may be of: its correlation, and the run that it names."""
    try:
        return {event.correlation, _of_run.decode(event.data).run_id} - {""}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {event.correlation}


def finish_all(storage: StorageReader, blobs: Blobs, pruning: Mapping[int, Pruned]) -> Iterator[PruneEnded]:
    """Remove the blobs that these events, by their positions, give up; but those that something needs, whatever the
    events say. Only for the holder of the log's lease, while nothing is live. Raises CorruptLog, OSError."""
    before = pruned_jobs(storage, blobs) if pruning else frozenset()
    for position, pruned in pruning.items():
        jobs = {job.job_id for job in pruned.jobs}
        free = droppable(storage, blobs, jobs, before - jobs, pruned.until)
        removed, size = blobs.remove(sorted(free.intersection(pruned.blobs)))
        yield PruneEnded(pruned=position, blobs=removed, bytes=size)
