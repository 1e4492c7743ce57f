"""What a run came to: the summary for people, the document for programs, the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from actors.orchestra.graph import in_levels
from contracts.orchestra import TaskDocument
from events.log import now
from pmagent.clean import shorten
from pmagent.cli.output import Output, Styled
from pmagent.cli.run_table import MARKS, mark
from pmagent.exitcodes import Exit
from pmagent.orchestra.places import folder_of, report_of
from pmagent.orchestra.progress import Progress, Shown
from pmagent.when import seconds_between, spoken

FAILED_SHOWN: Final = 10
LEVELS_SHOWN: Final = 50


def exit_code(progress: Progress) -> int:
    """The code with which a command ends that has followed the run to its end."""
    if progress.security:
        return Exit.SECURITY
    return {"done": Exit.DONE, "planned": Exit.DONE, "timed_out": Exit.TIMED_OUT}.get(progress.state, Exit.NO)


def document(progress: Progress) -> dict[str, Any]:
    """The run for programs."""
    config, run_id = progress.asked.config, progress.run_id
    made: dict[str, Any] = {
        "run_id": run_id,
        "state": progress.state,
        "exit_code": int(exit_code(progress)),
        "reasons": progress.reasons,
        "mend": progress.mend,
        "done": progress.counts["done"],
        "failed": progress.counts["failed"],
        "folder": folder_of(config, run_id),
        "report": report_of(config, run_id),
        "duration_ms": duration_ms(progress),
        "tasks": [_task(task) for task in progress.tasks.values()],
    }
    if progress.asked.plan_only:
        made["levels"] = levels(progress)
    return made


def whole(progress: Progress, tasks: Sequence[TaskDocument]) -> dict[str, Any]:
    """The run for programs, its tasks as the contract's task documents; ``names``: as the plan calls them."""
    return {
        **document(progress),
        "intent": progress.asked.intent,
        "action": progress.asked.action,
        "plan_id": progress.plan_id or None,
        "revision": progress.revision,
        "requested_at": progress.requested_at,
        "ended_at": progress.last_time if progress.over else None,
        "names": {task.planned.task_id: task.name for task in progress.tasks.values()},
        "tasks": [msgspec.to_builtins(task) for task in tasks],
    }


def summary(output: Output, progress: Progress) -> None:
    """The run for people, on stdout."""
    state = progress.state
    took = spoken(duration_ms(progress) / 1000)
    total = len(progress.tasks)
    of = f"{total} task{'s' if total != 1 else ''}"
    said = "nothing was run"
    if total and state != "refused":
        said = of if state == "planned" else f"{progress.counts['done']} of {of} done"
    simulated = ", simulated" if progress.asked.dry_run and state != "refused" else ""
    sign, style = MARKS.get(state, ("•", ""))
    if state == "planned" and progress.over:
        sign, style = "✓", "green"
    output.line(Styled(f"{sign} {state}", style), f": {said}{simulated}, {took}")
    for reason in progress.reasons:
        output.line(f"  {reason}")
    for mend in progress.mend:
        output.line(Styled(f"  mend: {mend}", "dim"))
    _failures(output, progress)
    if state == "planned":
        _levels(output, progress)
        output.line(f"  plan    {folder_of(progress.asked.config, progress.run_id)}/plan.json")
    output.line(f"  report  {report_of(progress.asked.config, progress.run_id)}")
    output.line(Styled(f"  run     {progress.run_id}", "dim"))


def levels(progress: Progress) -> list[list[str]]:
    """The tasks' names: those of a level wait only for earlier ones."""
    names = {task_id: task.name for task_id, task in progress.tasks.items()}
    found = in_levels({task_id: task.planned.depends_on for task_id, task in progress.tasks.items()})
    return [[names[task_id] for task_id in level] for level in found]


def duration_ms(progress: Progress) -> int:
    """From the request to the end, or to now."""
    until = progress.last_time if progress.over else max(progress.last_time, now())
    return round(seconds_between(progress.requested_at, until) * 1000)


def _failures(output: Output, progress: Progress) -> None:
    failed = [task for task in progress.tasks.values() if task.state == "failed" and task.attempt]
    for task in failed[:FAILED_SHOWN]:
        output.line("  ", mark("failed"), f" {task.name}: ", shorten(task.reason, output.columns - 6 - len(task.name)))
    if len(failed) > FAILED_SHOWN:
        output.line(f"  … and {len(failed) - FAILED_SHOWN} more: pmagent runs {progress.run_id[:8]}")


def _levels(output: Output, progress: Progress) -> None:
    found = levels(progress)
    for number, names in enumerate(found[:LEVELS_SHOWN], 1):
        output.line(f"  {number:>4}  ", shorten(", ".join(names), output.columns - 8))
    if len(found) > LEVELS_SHOWN:
        output.line(f"        … {len(found) - LEVELS_SHOWN} more levels")


def _task(task: Shown) -> dict[str, Any]:
    result = task.result
    return {
        "task_id": task.planned.task_id,
        "name": task.name,
        "state": task.state,
        "attempts": task.attempt,
        "duration_ms": result.metrics.duration_ms if result is not None else 0,
        "exit_code": result.metrics.exit_code if result is not None else None,
        "reason": task.reason if task.state == "failed" else "",
    }
