"""Repeating a run: the request for another one by the recorded plan, and what it takes from the first."""

from __future__ import annotations

import msgspec

from pmagent.actors.orchestra.planning.plan import as_written
from pmagent.contracts.orchestra_events import Earlier, RunRequested
from pmagent.events.errors import NotFound, PmagentError
from pmagent.jobs.history import Jobs
from pmagent.jobs.kinds import RUNS
from pmagent.projections.views.runs import Run


class NotRepeatable(PmagentError, exit_code=1):
    """The run cannot be repeated so; nothing was recorded."""


def repeated(jobs: Jobs, position: int, run_id: str, *, failed: bool) -> RunRequested:
    """The request for the run ``run_id``, which repeats the one that was requested at ``position``: by its plan,
    configuration and action class. ``failed``: tasks that are done are not repeated, their results are taken over.

    Raises NotRepeatable, CorruptLog.
    """
    run: Run = jobs.view(RUNS, position)
    name = run.id[:8]
    if not run.over:
        raise NotRepeatable(f"the run {name} is not over", f"pmagent run --follow {name} waits for it")
    if run.plan is None or run.asked.plan_only:
        what = "was only planned" if run.asked.plan_only else "has no plan"
        raise NotRepeatable(f"the run {name} {what}: nothing can be repeated", "pmagent run asks for a new one")
    done = _done(run) if failed else {}
    if failed and len(done) == len(run.tasks):
        raise NotRepeatable(f"every task of the run {name} is done", f"pmagent rerun {name} repeats all of them")
    for task, ended in done.items():
        _check_kept(jobs, name, task, ended)
    return msgspec.structs.replace(
        run.asked, run_id=run_id, plan=as_written(run.plan.tasks), source=f"the plan of run {name}",
        earlier=Earlier(run_id=run.id, done=done), operator_id=msgspec.UNSET, channel=msgspec.UNSET,
    )


def _done(run: Run) -> dict[str, int]:
    """The tasks that are done, and all that they waited for, each with the position of its ``task.finished``, in this
    run or an earlier one. A task that followed one that was skipped, or may fail, is repeated with it."""
    done: dict[str, int] = {}
    kept: set[str] = set()
    for task, planned in run.pairs:  # each comes after what it waits for
        ran = task.state == "done" and task.word != "skipped"
        if ran and kept.issuperset(planned.depends_on):
            kept.add(planned.task_id)
            done[planned.name] = run.left[task.left].position if task.left >= 0 else run.asked.done[planned.name]
    return done


def _check_kept(jobs: Jobs, run: str, task: str, position: int) -> None:
    for artifact in jobs.at(position).data.result.artifacts:
        try:
            jobs.blobs.reader(artifact.checksum).close()
        except NotFound:
            raise NotRepeatable(
                f"{task}/{artifact.path} of the run {run} is gone from the blob store",
                f"restore it from a copy, or repeat every task: pmagent rerun {run}",
            ) from None
