"""Pruning gives up what nobody needs, whatever was written, shared, given up and written again; and nothing else is
taken for given up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pmagent.actors.known import blob_check
from pmagent.contracts.control import Pruned, PrunedJob
from pmagent.events.blobs import BlobStore
from pmagent.events.event import Draft, format_time
from pmagent.events.reader import events
from pmagent.jobs.catalogue import Ending, Entry
from pmagent.jobs.kinds import RUNS
from pmagent.jobs.pruning import Policy, chosen, without_needed
from pmagent.projections.core.documents import pruned_jobs
from pmagent.service.pruning import droppable, finish_all
from tests.support.logs import LOG_ID, BatchWriter
from tests.support.memory_disk import MemoryDisk
from tests.support.memory_storage import MemoryStorage
from tests.support.prunable import run_id

JOBS = [run_id(number) for number in range(4)]
CONTENTS = [b"one", b"two", b"three"]

Step = Callable[["Kept"], None]


class Kept:
    """A log and its blobs; ``named``: content -> the jobs that name it ("": another event), each with the position
    where it did so last."""

    def __init__(self) -> None:
        self.blobs = BlobStore(MemoryDisk(), "/blobs")
        self.log = BatchWriter(MemoryStorage())
        self.log.create(LOG_ID)
        self.named: dict[bytes, set[str]] = {content: set() for content in CONTENTS}
        self.payloads: set[str] = set()
        self.gone: set[str] = set()

    def write(self, job: str, content: bytes, *, large: bool) -> None:
        """An event of the job names the content; the payload of a ``large`` one lies in a blob itself."""
        if job in self.gone:  # it is over
            return
        reference = {"sha256": self.blobs.put(content), "size": len(content), "media_type": "text/plain"}
        raw = msgspec.json.encode({"left": reference, "n": self.log.storage.tail().position})
        if large:
            size, name = len(raw), self.blobs.put(raw)
            raw = msgspec.json.encode({"blob": {"sha256": name, "size": size, "media_type": "application/json"}})
            self.payloads.add(name)
        self._append("toy.blobbed", raw, job)
        self.named[content].add(job)

    def prune(self, jobs: set[str], *, finished: bool) -> None:
        """Give up these jobs; unless ``finished``, the process dies before anything is removed."""
        ids = jobs - self.gone
        if not ids:
            return
        storage, until = self.log.storage, self.log.storage.tail().position
        free = droppable(storage, self.blobs, ids, pruned_jobs(storage, self.blobs), until)
        event = Pruned(
            operator_id="ada", channel="cli", jobs=[PrunedJob(job_id=one, paths=[]) for one in sorted(ids)],
            blobs=sorted(free), until=until, older_than_sec=0.0, keep=0,
        )  # fmt: skip
        position = self._append("control.pruned", msgspec.json.encode(event), "")
        self.gone |= ids
        if finished:
            list(finish_all(storage, self.blobs, {position: event}))

    def _append(self, type: str, raw: bytes, correlation: str) -> int:
        number = self.log.storage.tail().position
        return self.log.write([Draft(type, None, raw, f"f{number}", "operator", correlation)]).position

    def lose(self, content: bytes) -> bool:
        """Somebody removes the blob; whether it was there."""
        return self.blobs.remove([sha256(content).hexdigest()])[0] == 1

    def findings(self) -> tuple[int, int]:
        """How many blobs are bad, and how many are gone on purpose, as ``log verify`` counts them."""
        check = blob_check(self.blobs)
        for event in events(self.log.storage):
            check.look(event)
        return check.result.bad, check.result.pruned


writing = st.builds(
    lambda job, content, large: lambda kept: kept.write(job, content, large=large), st.sampled_from(["", *JOBS]),
    st.sampled_from(CONTENTS), st.booleans(),
)
pruning = st.builds(
    lambda jobs, finished: lambda kept: kept.prune(jobs, finished=finished), st.sets(st.sampled_from(JOBS), min_size=1),
    st.booleans(),
)


@given(st.lists(writing | pruning, max_size=14), st.sampled_from(CONTENTS))
def test_only_what_nobody_needs_goes_and_only_that_is_excused(steps: list[Step], lost: bytes) -> None:
    kept = Kept()
    for step in steps:
        step(kept)
    needed = {content for content, jobs in kept.named.items() if jobs - kept.gone}
    assert kept.findings()[0] == 0
    assert all(kept.blobs.check(name) for name in kept.payloads), "they are the log, and replay needs them"
    assert kept.lose(lost) or lost not in needed
    assert (kept.findings()[0] > 0) == (lost in needed), "a loss is told where somebody needs it"


ended = st.builds(lambda hours, pruned: (hours, pruned), st.none() | st.integers(0, 90 * 24), st.booleans())


@given(st.lists(ended, max_size=8), st.integers(0, 8), st.integers(0, 90))
def test_the_policy_keeps_newest_young_and_open(runs: list[tuple[int | None, bool]], keep: int, days: int) -> None:
    now = "2026-11-26T12:00:00.000000Z"
    entries = [_entry(number, *one) for number, one in enumerate(runs)]
    going = chosen(entries, Policy(days * 86_400.0, keep), now)
    kept = [one for one in entries if not one.pruned]
    for place, one in enumerate(kept):
        hours = runs[one.position][0]
        assert (one in going) == (place >= keep and hours is not None and hours >= days * 24)
    assert all(not one.pruned for one in going)


def _entry(number: int, hours: int | None, pruned: bool) -> Entry:
    ending = None
    if hours is not None:
        time = format_time(datetime(2026, 11, 26, 12, tzinfo=UTC) - timedelta(hours=hours))
        ending = Ending(state="done", request=number, position=number, time=time)
    return Entry(RUNS, run_id(number), number, "", "", whole=True, ending=ending,
                 pruned="yesterday" if pruned and ending else "")


@given(st.sets(st.sampled_from(JOBS)), st.permutations(JOBS))
def test_a_run_stays_while_one_that_stays_uses_its_results(going: set[str], chain: list[str]) -> None:
    earlier = list(zip(chain[1:], chain, strict=False))  # each took over results of the one before it
    left = without_needed(going, earlier)
    for place, run in enumerate(chain):
        used = any(one not in going for one in chain[place + 1 :])
        assert (run in left) == (run in going and not used)
