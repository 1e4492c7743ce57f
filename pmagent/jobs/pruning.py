"""Giving up what old runs left: which runs, which blobs, and the event that says so (docs/running.md)."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from pmagent.contracts.control import OperatorId, Pruned, PrunedJob, PruneEnded
from pmagent.contracts.orchestra_events import RunRequested
from pmagent.events.errors import CorruptLog, LogLocked, NotFound, PmagentError
from pmagent.events.event import parse_time
from pmagent.events.log import now
from pmagent.events.storage import Blobs
from pmagent.events.tree import LeadsOut, Tree
from pmagent.flat import flat_errors
from pmagent.jobs.asking import open_jobs
from pmagent.jobs.catalogue import ALL, Catalogue, Entry
from pmagent.jobs.history import Jobs, opened
from pmagent.jobs.kinds import AUDITS, RUNS
from pmagent.projections.core.disk import LEADS_OUT
from pmagent.projections.core.documents import pruned_jobs
from pmagent.projections.runs.paths import run_paths
from pmagent.service.client import new_request
from pmagent.service.host import Host, open_host
from pmagent.service.pruning import droppable
from pmagent.workspace.layout import Layout

SURFACE: Final = "prune"
JOBS_MAX: Final = 5_000
"""So many runs are given up in one event; the next call takes the others."""


class NotPruned(PmagentError, exit_code=1):
    """Nothing was pruned."""


class Policy(msgspec.Struct, frozen=True):
    """A run goes if it ended more than ``older_than`` seconds ago and is not among the ``keep`` newest."""

    older_than: float
    keep: int


class Prunable(msgspec.Struct, frozen=True):
    """Runs that may go, oldest first, with the paths of their documents; the ``blobs`` that go with them, as of
    position ``until``; and how many bytes all of that has on disk. ``needed``: runs that would go, but whose results
    another run took over."""

    runs: list[Entry]
    jobs: list[PrunedJob]
    blobs: list[str]
    until: int
    blob_bytes: int
    document_bytes: int
    needed: list[str]


def chosen(runs: Sequence[Entry], policy: Policy, time: str) -> list[Entry]:
    """Those of ``runs``, which come newest first, that go by ``policy`` at log time ``time``."""
    kept = [run for run in runs if not run.pruned]
    clock = parse_time(time)
    return [
        run
        for run in kept[policy.keep :]
        if run.ending is not None and (clock - parse_time(run.ending.time)).total_seconds() >= policy.older_than
    ]


def without_needed(going: Collection[str], earlier: Iterable[tuple[str, str]]) -> set[str]:
    """Those of ``going`` that no run needs that stays. ``earlier``: a run, and the one whose results it took over."""
    left, needs = set(going), dict(earlier)
    for run in [run for run in needs if run not in left]:
        while (run := needs.get(run, "")) in left:
            left.discard(run)
    return left


def look(layout: Layout, policy: Policy, only: Collection[str] | None = None) -> Prunable:
    """The jobs that would go; of the runs ``only``, where they are given. Nothing is changed. Raises NotFound
    where there is no log, CorruptLog."""
    with opened(layout) as jobs:
        until = jobs.storage.tail().position
        runs = Catalogue(layout, kept=ALL).listed(RUNS, ALL, look=ALL).entries
        going = {run.job_id for run in chosen(runs, policy, now()) if only is None or run.job_id in only}
        earlier = [(run.job_id, took) for run in runs if not run.pruned and (took := _took(jobs, run))]
        left = without_needed(going, earlier)
        found = [run for run in reversed(runs) if run.job_id in left and not run.pruned][:JOBS_MAX]
        pruned = [_documents(jobs, run) for run in found]
        ids = {run.job_id for run in found}
        blobs = sorted(droppable(jobs.storage, jobs.blobs, ids, pruned_jobs(jobs.storage, jobs.blobs), until))
        size = sum(_blob_size(jobs.blobs, name) for name in blobs)
        documents = sum(_size(layout.workspace / path) for job in pruned for path in job.paths)
        return Prunable(found, pruned, blobs, until, size, documents, sorted(going - left))


def _took(jobs: Jobs, run: Entry) -> str:
    """The run whose results this one took over; "": it took none."""
    asked: RunRequested = jobs.at(run.position).data
    return asked.earlier.run_id if asked.earlier is not None and asked.earlier.done else ""


def _documents(jobs: Jobs, run: Entry) -> PrunedJob:
    at = run_paths(jobs.at(run.position).data.config.paths, run.job_id)
    paths = {_up_to(path, run.job_id) for path in (at.folder, at.log, at.report, at.artifacts, at.job)}
    return PrunedJob(job_id=run.job_id, paths=sorted(paths))


def _up_to(path: str, name: str) -> str:
    """The path up to the part that holds ``name``."""
    parts = path.split("/")
    return "/".join(parts[: next(at for at, part in enumerate(parts) if name in part) + 1])


def _blob_size(blobs: Blobs, name: str) -> int:
    try:
        reader = blobs.reader(name)
    except (NotFound, CorruptLog):  # it is lost already
        return 0
    reader.close()
    return reader.size


def _size(path: Path) -> int:
    """The bytes of a file, or of all files below a folder; links are not followed."""
    size, left = 0, [str(path)]
    while left:
        one = left.pop()
        try:
            found = os.lstat(one)
            if stat.S_ISDIR(found.st_mode):
                left += [entry.path for entry in os.scandir(one)]
            else:
                size += found.st_size
        except OSError:  # it is gone, closed to us, or too deep; nothing depends on this sum
            continue
    return size


def prune(workspace: Path, policy: Policy, shown: Prunable, operator: OperatorId) -> PruneEnded:
    """Give up those of the ``shown`` runs that may still go. Blocking.

    Raises LogLocked where a process holds the log; NotPruned; what ``open_host`` raises.
    """
    with flat_errors():
        position = anyio.run(partial(_record, workspace, policy, shown, operator))
        return anyio.run(partial(_finish, workspace, position))


async def _record(workspace: Path, policy: Policy, shown: Prunable, operator: OperatorId) -> int:
    """Record what is given up; the event's position. The documents go with that."""
    async with open_host(workspace, SURFACE) as host:
        _check_idle(host)
        ids = {run.job_id for run in shown.runs}
        found = await anyio.to_thread.run_sync(look, host.layout, policy, ids)
        if not found.runs:
            raise NotPruned("nothing is left that may go", "look again: pmagent prune --dry-run")
        await anyio.to_thread.run_sync(_check_reachable, workspace, found.jobs)
        event = Pruned(
            operator_id=operator, channel="cli", jobs=found.jobs, blobs=found.blobs, until=found.until,
            older_than_sec=policy.older_than, keep=policy.keep,
        )  # fmt: skip
        draft = await anyio.to_thread.run_sync(host.drafted, event, new_request(SURFACE))
        position = await host.tell_draft(draft)
        await host.flush()
        return position


def _check_idle(host: Host) -> None:
    """A job that is open would go on meanwhile, and name blobs. Raises NotPruned."""
    for kind in (RUNS, AUDITS):
        for job in open_jobs(host, kind):
            raise NotPruned(
                f"the {kind.word} {job[:8]} is open", f"wait for its end, or pmagent cancel {job[:8]}; then prune again"
            )


def _check_reachable(workspace: Path, jobs: Sequence[PrunedJob]) -> None:
    """Once the event is recorded there is no way back, so what could not be removed then is told before. Raises
    NotPruned."""
    tree = Tree(workspace)
    for path in [path for job in jobs for path in job.paths]:
        try:
            tree.exists(path, own=1)
        except LeadsOut:
            raise NotPruned(f"{path}: {LEADS_OUT}", "remove the link; then prune again") from None
        except OSError as error:
            what = f"{path} cannot be looked at: {error.strerror or type(error).__name__}"
            raise NotPruned(what, "mend that; then prune again") from error


async def _finish(workspace: Path, position: int) -> PruneEnded:
    """Have the blobs removed as each start does that finds this unfinished; what was removed."""
    try:
        async with open_host(workspace, SURFACE) as host:
            return await anyio.to_thread.run_sync(_ended, host, position)
    except LogLocked:  # whoever was faster has finished it
        return PruneEnded(pruned=position, blobs=0, bytes=0)


def _ended(host: Host, position: int) -> PruneEnded:
    for at in range(position + 1, host.tail.position + 1):
        data = host.event(at).data
        if isinstance(data, PruneEnded) and data.pruned == position:
            return data
    raise NotPruned("the blobs could not be removed yet", "the next command that acts removes them")
