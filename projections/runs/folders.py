"""Projection: what runs of Orchestra leave, ``runs/<run_id>/…`` and ``jobs/<run_id>.json`` (docs/design.md §14.8).

A run's configuration, report and job exist from its request on; its plan from when there is one; its log and metrics
too, unless it was to be planned only. Events after the end of a run change nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pmagent.actors.orchestra.planning.plan import answer
from pmagent.actors.orchestra.planning.render import rendered
from pmagent.contracts.content import BlobContent, Content, Growing
from pmagent.contracts.control import Pruned
from pmagent.contracts.orchestra_config import OrchestraConfig
from pmagent.contracts.orchestra_events import RunRequested
from pmagent.events.event import Event, LogCreated
from pmagent.projections.core.projection import Part
from pmagent.projections.runs import fold, json
from pmagent.projections.runs.lines import lines
from pmagent.projections.runs.numbers import job, metrics
from pmagent.projections.runs.paths import run_paths
from pmagent.projections.runs.report import report
from pmagent.projections.views.jobs import JobDocuments, JobsView
from pmagent.projections.views.runs import Plan, Run

RUNS_KEPT: Final = 32
"""So many ended runs stay in the state, the newest: after a crash it is seen whether their documents are there."""
TASKS_KEPT: Final = 10_000
"""Fewer stay if they have more tasks than this together; the newest always stays."""


class RunsView(JobsView[Run], frozen=True):
    """See JobsView."""


class RunFolders(JobDocuments[Run]):
    """The documents of all runs. ``kept`` and ``tasks`` bound the ended runs that stay in the state."""

    name = "run_folders"
    hears = frozenset((LogCreated, Pruned, *fold.HEARD))
    state = RunsView
    request = RunRequested
    id_field = "run_id"

    def __init__(self, kept: int = RUNS_KEPT, tasks: int = TASKS_KEPT) -> None:
        super().__init__(kept, tasks)

    def begun(self, event: Event, sum: str) -> Run:
        """See JobDocuments."""
        run = fold.requested(event, sum)
        return msgspec.structs.replace(run, log=run.log.added(lines(run, event)))

    def evolved(self, job: Run, event: Event, sum: str) -> Run:
        """See JobDocuments."""
        after, added = fold.evolved(job, event, sum), lines(job, event)
        return msgspec.structs.replace(after, log=after.log.added(added)) if added else after

    def parts(self, job: Run, before: Run | None, log_id: str) -> dict[str, Part]:
        """See JobDocuments."""
        return documents(job, before, log_id)


def documents(run: Run, before: Run | None, log_id: str) -> dict[str, Part]:
    """The run's documents; those that were the same when it was as ``before`` may be left out."""
    at = run_paths(run.asked.config.paths, run.id)
    found: dict[str, Part] = {}
    if before is None:
        found[at.config] = Part(_config, (run.asked.config,))
    if run.plan is not None:
        if before is None or before.plan is not run.plan:
            found[at.plan] = Part(_plan, (run.plan,))
        if not run.asked.plan_only:
            found[at.log] = Part(_log, (run.log,))
            found[at.metrics] = Part(metrics, (run,))
    for left in run.left.since(len(before.left) if before is not None else 0):
        for artifact in left.artifacts:
            content = BlobContent(artifact.checksum, artifact.size_bytes)
            found[at.artifact(artifact.path)] = Part(_same, (content,))
    found[at.report] = Part(report, (run, log_id))
    found[at.job] = Part(job, (run,))
    return {path: part._replace(owner=run.id) for path, part in found.items()}


def _config(config: OrchestraConfig) -> bytes:
    return rendered(config).encode()


def _plan(plan: Plan) -> bytes:
    return json.document(answer(plan.plan_id, plan.tasks))


def _log(log: Growing) -> Content:
    return log


def _same(content: BlobContent) -> Content:
    return content
