"""The simulation notices when a run goes other than it must: faults of our own in L1, L2 and L3, each found."""

from __future__ import annotations

import re

import pytest

from pmagent.actors.orchestra.planning import prompts as planning
from pmagent.actors.orchestra.running import coordinator, orchestrator, run_state, states, worker
from pmagent.actors.orchestra.running import task_state as job
from pmagent.actors.orchestra.running.task_state import Job
from pmagent.actors.orchestra.running.worker import Worker
from tests.support.planted import Planted, by_day, plant_all
from tests.support.simulated import RUNS, failure

PLANTED: Planted = {
    "a task starts before what it waits for": ("starts before .* are done|IllegalStep", [
        (states, "begun", "if any(board.letters[one]", "if False and any(board.letters[one]"),
    ]),
    "a task becomes ready when the first that it waits for is done": ("unblocks after .*|IllegalStep", [
        (states, "_freed", "and all(letters[other]", "and any(letters[other]"),
    ]),
    "a run takes more places than it has": ("places, .* are free|coordinator halted", [
        (run_state, "_on", "<= free:", "<= free + 1:"),
    ]),
    "a run's places are not given free": ("may start, has a place, and does not|nobody goes on|has 0 answers", [
        (run_state, "task_ended", "run, slots=left,", "run, slots={**left, index: [1]},"),
    ]),
    "ready tasks start in another order": ("which come first", [
        (run_state, "_on", "index = board.first", "break; index = board.first"),
        (run_state, "_on", 'board.first("planned")\n        while', 'board.letters.rfind("p")\n        while'),
    ]),
    "an attempt that can never succeed is made again": ("it can never start", [
        (job, "failure_of", "again=outcome.again,", "again=True,"),
    ]),
    "a violation is tried again": ("it did what no tool may", [
        (job, "failure_of", "again=False, security=True", "security=True"),
    ]),
    "one attempt too many is made": ("have failed, .* retries are allowed", [
        (Job, "may_retry", "self.used <= allowed", "self.used <= allowed + 1"),
    ]),
    "an attempt too few is made": ("failed, though it may be attempted again", [
        (Job, "may_retry", "self.used <= allowed", "self.used < allowed"),
    ]),
    "an attempt that a stop cut off counts": ("failed, though it may be attempted again", [
        (job, "_cut_short", 'counts=reason != "stop"', "counts=True"),
    ]),
    "an attempt that was not cut off waits for the next start": ("it was not cut off", [
        (worker, "concluded", 'if job.doing == "held":', "if True:"),
    ]),
    "the next attempt comes too soon": ("not before", [
        (worker, "concluded", "pause_seconds(job.assigned.backoff_base_sec, job.used)", "0.0"),
    ]),
    "a pause forgets the power": ("not before", [
        (job, "pause_seconds", "range(retry)", "range(1)"),
    ]),
    "a done task is attempted again after a start": ("it is done|is for no open run|finished: [1-9]", [
        (Worker, "evolve", "case TaskFinished(result=result):", "case TaskFinished(result=result) if False:"),
        (Worker, "decide", 'if job.doing in ("ready", "held")', 'if job.doing in ("ready", "held", "ended")'),
    ]),
    "what a crash cut off is not taken up": ("nobody goes on with", [
        (Worker, "decide", 'if job.doing in ("ready", "held")', 'if job.doing == "ready"'),
    ]),
    "a command takes runs up": ("by a process that takes no runs up", [
        (Worker, "evolve", "live=surface in LIVE", "live=True"),
    ]),
    "what is done counts as failed for those that wait": ("though nothing failed that it waits for|never|unblocks", [
        (states, "ended", "return [own, *succeeded(board.stepped([own]), index)]",
         "return [own, *_given_up(board.stepped([own]), index)]"),
    ]),
    "those that wait for a failed task are forgotten": ("waits for .*bad", [
        (states, "ended", "return [own, *_given_up(board, index)]", "return [own]"),
    ]),
    "those that wait through another are forgotten": ("waits for .*bad", [
        (states, "_given_up", "while level:", "for _ in range(1):"),
    ]),
    "a task runs though its condition does not hold": ("(unblocks|starts) after", [
        (states, "_next_step", '(board, index)) else "skip"', '(board, index)) else "unblock"'),
    ]),
    "a task that may fail counts as failed": ("skips after", [
        (states, "_next_step", 'in (LETTERS["done"], TOLERATED)', 'in (LETTERS["done"],)'),
    ]),
    "what was skipped counts as a success": ("(unblocks|starts|blocks|skips)", [
        (states, "_next_step", 'in (LETTERS["done"], TOLERATED)', 'in (LETTERS["done"], TOLERATED, SKIPPED)'),
    ]),
    "a run is told to have failed for tasks that may": ("is finished with|may have failed", [
        (run_state, "_on", 'failed=board.count("failed") - tolerated', 'failed=board.count("failed")'),
    ]),
    "a failed task is dropped": ("nobody goes on with|has 0 answers", [
        (Worker, "decide", "return concluded(over, event)", "return concluded(over, event)[:1]"),
    ]),
    "a task has two ends": ("its result is|it has one at|from (done|failed) to|it is (done|failed)", [
        (Worker, "decide", "return concluded(over, event)",
         "made = concluded(over, event); return [*made, made[-1]] if len(made) == 1 else made"),
    ]),
    "a result says done though the attempt failed": ("not by its last attempt|its result is", [
        (worker, "concluded", 'finished(job, outcome, "failed", failure.reason, security=failure.security)',
         'finished(job, outcome, "done", "")'),
    ]),
    "a run is ended twice": ("and was at|has 2 answers", [
        (orchestrator, "_finished", 'yield from _ended(run, "done"', 'for _ in (1, 2): yield from _ended(run, "done"'),
    ]),
    "a run goes on though its permit was taken back": ("though it must be stopped|has 0 answers", [
        (orchestrator, "_concerned", "return run if permit == run.permit else None", "return None"),
    ]),
    "a run goes on behind its time": ("though it must be timed_out|has 0 answers", [
        (orchestrator, "_concerned", "return run if request == run.timer else None", "return None"),
    ]),
    "a run has more time than was given": ("its timer fires at", [
        (orchestrator, "_begin", "at=run.ends_at", 'at=run.ends_at.replace("2", "3", 1)'),
    ]),
    "a run that is cancelled goes on": ("though it must be cancelled", [
        (orchestrator, "_cancel",
         'Correlated(_stopping(run, "cancelled", [asked.reason.strip() or "cancelled"], []), run.run_id),', ""),
    ]),
    "a run that ends leaves its timer": ("its timer goes on", [
        (orchestrator, "_over", "yield EffectCancelRequested(request=run.timer)", "yield from ()"),
    ]),
    "a task that is stopped leaves its pause": ("its timer goes on", [
        (worker, "_stopped", '[EffectCancelRequested(request=job.request)] if job.doing == "pause"', '[] if True'),
    ]),
    "a run that is to end waits for attempts without ending them": ("has 0 answers|does not come to an end|is to end", [
        (worker, "_stopped", "return [EffectCancelRequested(request=job.request)]", "return []"),
    ]),
    "tasks begin though the run is to end": ("a task starts though it is to end|the run is to end|IllegalStep", [
        (run_state, "_on", 'if run.doing == "running":', 'if run.doing in ("running", "stopping"):'),
        (run_state, "stop", "*states.abandoned(board, reason)", ""),
    ]),
    "a stopped run's tasks are left as they stand": ("have not ended|has 0 answers", [
        (states, "abandoned", 'if state in ("planned", "blocked"):', 'if state == "planned":'),
    ]),
    "a run that is to be planned only begins": ("planned only|as done|as failed", [
        (orchestrator, "_planned", "if run.plan_only:", "if False:"),
    ]),
    "a run begins under another's permit": ("a permit that is none for it|another scope|the plan does not run", [
        (orchestrator, "_planned", "subject=permit_subject(run.run_id)", 'subject="run:any"'),
    ]),
    "a planner is asked without end": ("is number 4", [
        (coordinator, "_from_answer", "if run.attempt < PLANNER_TRIES:", "if True:"),
        (coordinator, "_no_answer", "and run.attempt < PLANNER_TRIES", ""),
    ]),
    "a planner is asked again that must not be": ("asking again cannot help", [
        (coordinator, "_no_answer", "if again and", "if"),
    ]),
    "a plan is made though it is a wish for more": ("places|starts|is online|retries", [
        (planning, "make_plan", "    check_allowed(given.tasks, config, where)\n", ""),
    ]),
    "a replan forgets what is done": ("counts", [
        (run_state, "again", "kept=len(done),", "kept=0,"),
    ]),
    "a replan comes once too often": ("follows", [
        (orchestrator, "_finished", "run.revision < run.replans", "run.revision <= run.replans"),
    ]),
    "plans count their tasks wrong": ("is finished: with|is finished with", [
        (run_state, "_on", 'done=board.count("done")', 'done=board.count("done") + 1'),
    ]),
    "a violation is not told": ("a violation is told", [
        (run_state, "task_ended", "security=run.security or finished.security", "security=False"),
    ]),
    "a task is told to follow nothing": ("assignment .* after", [
        (run_state, "_assigned", "for one in before if", "for one in [] if"),
    ]),
    "a run of a known id is taken": ("coordinator halted|no open run|has 0 answers|and was at|its timer fires|counts", [
        (orchestrator, "_objection", "if asked.run_id in state.runs:", "if False:"),
    ]),
}

@pytest.mark.parametrize("fault", by_day(PLANTED))
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    says, exchanges = PLANTED[fault]
    plant_all(monkeypatch, exchanges)
    assert re.search(says, failure(fault, RUNS))
