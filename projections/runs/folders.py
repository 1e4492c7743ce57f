"""Projection: what runs of Orchestra leave, ``runs/<run_id>/…`` and ``jobs/<run_id>.json`` (docs/design.md §14.8).

A run's configuration, report and job exist from its request on; its plan from when there is one; its log and metrics
too, unless it was to be planned only. What happens to a run after its end changes nothing any more.
"""

from __future__ import annotations

from typing import Final

import msgspec

from actors.orchestra.plan import answer
from actors.orchestra.render import rendered
from contracts.content import BlobContent, Content, Growing
from contracts.effect import EffectInterrupted, RequestRefused
from contracts.oa import OaPermitGranted, OaPermitRefused, OaPermitRequested, OaPermitRevoked
from contracts.orchestra_config import OrchestraConfig
from contracts.orchestra_events import (
    PlanFailed,
    PlanFinished,
    PlanMade,
    PlannerCallRequested,
    PlannerFailed,
    PlannerReplied,
    PlanRequested,
    RunBegun,
    RunCancelRequested,
    RunEnded,
    RunRefused,
    RunRequested,
    RunStopping,
    TaskAssigned,
    TaskAttemptFailed,
    TaskAttemptRequested,
    TaskExited,
    TaskFinished,
    TasksChanged,
    TasksPlanned,
    TaskUnstarted,
)
from events.event import Event, LogCreated
from projections.projection import Part
from projections.runs import fold, json
from projections.runs.lines import lines
from projections.runs.numbers import job, metrics
from projections.runs.places import places
from projections.runs.report import report
from projections.runs.view import Plan, Run

RUNS_KEPT: Final = 32
"""So many ended runs stay in the state, the newest: after a crash it is seen whether their documents are there."""
TASKS_KEPT: Final = 10_000
"""Fewer stay if they have more tasks than this together; the newest always stays."""


class RunsView(msgspec.Struct, frozen=True):
    """The log's id, and runs by id: open ones, and the newest of those that have ended (``ended``, in the order of
    their ends). ``gone``: a run whose id another one has taken, until it is retired."""

    log_id: str = ""
    runs: dict[str, Run] = {}
    ended: list[str] = []
    gone: list[Run] = []


class RunFolders:
    """The documents of all runs as a function of a log prefix. ``kept`` and ``tasks`` bound the ended runs that stay in
    the state."""

    def __init__(self, kept: int = RUNS_KEPT, tasks: int = TASKS_KEPT) -> None:
        self._kept = kept
        self._tasks = tasks

    name = "run_folders"
    hears: frozenset[type[msgspec.Struct]] = frozenset(
        (
            LogCreated, RunRequested, RunRefused, RunEnded, RunBegun, RunStopping, RunCancelRequested, RequestRefused,
            PlanRequested, PlanMade, PlanFailed, PlanFinished, PlannerCallRequested, PlannerReplied, PlannerFailed,
            TasksPlanned, TasksChanged, TaskAssigned, TaskAttemptRequested, TaskExited, TaskUnstarted,
            EffectInterrupted, TaskAttemptFailed, TaskFinished, OaPermitRequested, OaPermitGranted,
            OaPermitRefused, OaPermitRevoked,
        )
    )  # fmt: skip

    def initial(self) -> RunsView:
        """No run."""
        return RunsView()

    def evolve(self, state: RunsView, event: Event, sum: str) -> RunsView:
        """The view after ``event``, whose line's sum is ``sum``."""
        data = event.data
        if isinstance(data, LogCreated):
            return RunsView(data.log_id)
        known = state.runs.get(getattr(data, "run_id", event.correlation))
        gone: list[Run] = []
        if isinstance(data, RunRequested) and (known is None or known.doing == "over"):
            gone = [] if known is None else [known]
            known = fold.requested(event, data, sum)
        elif known is None or known.doing == "over":
            return state
        after = fold.evolved(known, event, sum)
        added = lines(known, event)
        if added:
            after = msgspec.structs.replace(after, log=after.log.added(added))
        ended = [one for one in state.ended if one != after.run_id]
        if after.doing == "over":
            ended.append(after.run_id)
        return RunsView(state.log_id, {**state.runs, after.run_id: after}, ended, gone)

    def retire(self, state: RunsView) -> RunsView:
        """Without the oldest of the runs that have ended."""
        kept, tasks = 0, 0
        for name in reversed(state.ended):
            tasks += len(state.runs[name].tasks)
            if kept and (kept >= self._kept or tasks > self._tasks):
                break
            kept += 1
        if kept == len(state.ended) and not state.gone:
            return state
        gone = set(state.ended[: len(state.ended) - kept])
        runs = {name: run for name, run in state.runs.items() if name not in gone}
        return RunsView(state.log_id, runs, state.ended[len(state.ended) - kept :])

    def documents(self, state: RunsView, since: RunsView | None) -> dict[str, Part]:
        """Of runs that have changed, those documents that may have."""
        found: dict[str, Part] = {}
        for run in state.gone:
            found |= documents(run, None, state.log_id)
        for name, run in state.runs.items():
            before = since.runs.get(name) if since is not None else None
            if before is not None and before.requested != run.requested:
                before = None
            if before is not run:
                found |= documents(run, before, state.log_id)
        return found


def documents(run: Run, before: Run | None, log_id: str) -> dict[str, Part]:
    """The run's documents; those that were the same when it was as ``before`` may be left out."""
    at = places(run.asked.config.paths, run.run_id)
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
    return {path: part._replace(owner=run.run_id) for path, part in found.items()}


def _config(config: OrchestraConfig) -> bytes:
    return rendered(config).encode()


def _plan(plan: Plan) -> bytes:
    return json.document(answer(plan.plan_id, plan.tasks))


def _log(log: Growing) -> Content:
    return log


def _same(content: BlobContent) -> Content:
    return content
