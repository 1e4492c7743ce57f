"""A run at the shell: its table and its summary for people, its document for programs, its exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pmagent.actors.orchestra.planning.graph import in_levels
from pmagent.clean import pad, shorten
from pmagent.cli.job_text import (
    MARKS,
    Rendering,
    duration_ms,
    elapsed,
    fitted,
    heading,
    mark,
    name_columns,
    reasons,
)
from pmagent.cli.output import Output, Piece, Styled
from pmagent.contracts.orchestra import TaskState
from pmagent.contracts.orchestra_events import PlannedTask
from pmagent.events.log import now
from pmagent.exitcodes import Exit
from pmagent.jobs.kinds import RUNS
from pmagent.orchestra.paths import folder_of, report_of
from pmagent.projections.runs.changes import cut_words, saying
from pmagent.projections.runs.chunks import chunked
from pmagent.projections.runs.numbers import task_documents
from pmagent.projections.views.jobs import End
from pmagent.projections.views.runs import Run, Task
from pmagent.when import seconds_between, spoken, took

FAILED_SHOWN: Final = 10
LEVELS_SHOWN: Final = 50
NAME_COLUMNS_MAX: Final = 32
STATE_COLUMNS: Final = 8
TIME_COLUMNS: Final = 9
_ORDER: Final[tuple[TaskState, ...]] = ("done", "failed", "running", "planned", "blocked")

_REASONED: Final = ("failed", "skipped")
"""States that are shown with their reason."""

Pair = tuple[Task, PlannedTask]


def exit_code(run: Run) -> int:
    """The code with which a command ends that has followed the run to its end."""
    if run.over and run.security:
        return Exit.SECURITY
    return {"done": Exit.DONE, "planned": Exit.DONE, "timed_out": Exit.TIMED_OUT}.get(run.state, Exit.NO)


# --- for programs --------------------------------------------------------------------------------------------------


def document(run: Run) -> dict[str, Any]:
    """The run for programs."""
    config, counts = run.asked.config, run.counts
    made: dict[str, Any] = {
        "run_id": run.id,
        "state": run.state,
        "exit_code": int(exit_code(run)),
        "reasons": run.reasons if run.over else [],
        "mend": run.mend if run.over else [],
        "done": counts["done"],
        "failed": counts["failed"] - run.tolerated,
        "tolerated": run.tolerated,
        "folder": folder_of(config, run.id),
        "report": report_of(config, run.id),
        "duration_ms": duration_ms(run),
        "tasks": [_task(run, *pair) for pair in run.pairs],
    }
    if run.asked.plan_only:
        made["levels"] = levels(run)
    return made


def whole(run: Run) -> dict[str, Any]:
    """The run for programs, its tasks as the contract's task documents; ``names``: as the plan calls them."""
    return {
        **document(run), "intent": run.asked.intent, "action": run.asked.action,
        "plan_id": run.plan.plan_id if run.plan is not None else None, "revision": run.revision,
        "repeats": run.asked.earlier.run_id if run.asked.earlier is not None else None, "requested_at": run.at,
        "ended_at": run.ended or None, "names": {planned.task_id: planned.name for planned in run.planned_tasks},
        "tasks": [msgspec.to_builtins(task) for task in task_documents(run)],
    }


def narrowed(run: Run, states: Sequence[str], text: str, count: int) -> Run:
    """The run with those of its tasks only that are in one of ``states`` (none: in any) and have ``text`` in name,
    intent or reason; at most ``count``."""
    wanted = text.casefold()

    def found(task: Task, planned: PlannedTask) -> bool:
        told = f"{planned.name}\n{planned.intent}\n{task.reason}"
        return (not states or task.state in states) and wanted in told.casefold()

    pairs = [pair for pair in run.pairs if found(*pair)][:count]
    if run.plan is None:
        return run
    tasks = [planned for _, planned in pairs]
    return msgspec.structs.replace(
        run, plan=msgspec.structs.replace(run.plan, tasks=tasks), tasks=chunked([task for task, _ in pairs]),
        places={task.task_id: place for place, task in enumerate(tasks)},
    )


def _task(run: Run, task: Task, planned: PlannedTask) -> dict[str, Any]:
    ended = task.left >= 0
    return {
        "task_id": planned.task_id, "name": planned.name, "state": task.state, "attempts": task.attempts,
        "duration_ms": task.duration_ms if ended else 0, "exit_code": task.exit_code if ended else None,
        "reason": task.reason if task.word in _REASONED else "",
        "cut": [{"path": one.path, "gap_at": one.gap_at, "gap_bytes": one.gap_bytes} for one in run.cut(task)],
    }


def levels(run: Run) -> list[list[str]]:
    """The tasks' names: those of a level wait only for earlier ones."""
    names = {planned.task_id: planned.name for planned in run.planned_tasks}
    found = in_levels({
        planned.task_id: [one for one in planned.depends_on if one in names] for planned in run.planned_tasks
    })
    return [[names[task_id] for task_id in level] for level in found]


def _entry(run: Run, end: End | None) -> dict[str, Any]:
    asked = run.asked
    return {
        "run_id": asked.run_id,
        "intent": asked.intent,
        "action": asked.action,
        "state": run.state,
        "reasons": run.reasons,
        "done": end.done if end is not None else 0,
        "failed": end.failed if end is not None else 0,
        "plan_only": asked.plan_only,
        "dry_run": asked.dry_run,
        "requested_at": run.at,
        "ended_at": run.ended or None,
        "position": run.requested,
        "folder": folder_of(asked.config, asked.run_id),
    }


# --- for people ----------------------------------------------------------------------------------------------------


def summary(output: Output, run: Run) -> None:
    """The run for people, on stdout."""
    state, may = run.state, run.tolerated
    total = len(run.tasks) - may
    of = f"{total} task{'s' if total != 1 else ''}"
    summary = "nothing was run"
    if len(run.tasks) and state != "refused":
        summary = of if state == "planned" else f"{run.counts['done']} of {of} done"
        summary += f", {may} failed and may" if may else ""
    simulated = ", simulated" if run.asked.dry_run and state != "refused" else ""
    sign, style = ("✓", "green") if state == "planned" else MARKS.get(state, ("•", ""))
    output.line(Styled(f"{sign} {state}", style), f": {summary}{simulated}, {spoken(duration_ms(run) / 1000)}")
    reasons(output, run)
    _failures(output, run)
    if state == "planned":
        _levels(output, run)
        output.line(f"  plan    {folder_of(run.asked.config, run.id)}/plan.json")
    if any(task.state == "failed" and task.attempts for task in run.tasks):
        output.line(f"  output  pmagent logs {run.id[:8]} --failed")
    output.line(f"  report  {report_of(run.asked.config, run.id)}")
    output.line(Styled(f"  run     {run.id}", "dim"))


def _failures(output: Output, run: Run) -> None:
    failed = [(task, planned.name) for task, planned in run.pairs if task.state == "failed" and task.attempts]
    for task, name in failed[:FAILED_SHOWN]:
        output.line("  ", mark("failed"), f" {name}: ", shorten(task.reason, output.columns - 6 - len(name)))
    if len(failed) > FAILED_SHOWN:
        output.line(f"  … and {len(failed) - FAILED_SHOWN} more: pmagent runs {run.id[:8]}")
    cut = [(planned.name, words) for task, planned in run.pairs if (words := cut_words(run, task))]
    for name, words in cut[:FAILED_SHOWN]:
        output.line("  ", Styled(f"{name}: {words}", "yellow"))
    if len(cut) > FAILED_SHOWN:
        output.line(f"  … and {len(cut) - FAILED_SHOWN} more with output that was cut")


def _levels(output: Output, run: Run) -> None:
    found = levels(run)
    for number, names in enumerate(found[:LEVELS_SHOWN], 1):
        output.line(f"  {number:>4}  ", shorten(", ".join(names), output.columns - 8))
    if len(found) > LEVELS_SHOWN:
        output.line(f"        … {len(found) - LEVELS_SHOWN} more levels")


def _details(output: Output, run: Run) -> None:
    output.line(f"  folder  {folder_of(run.asked.config, run.id)}")
    output.line("  intent  ", shorten(run.asked.intent, output.columns - 10))
    for line in table(run, run.ended or now(), output.columns, len(run.tasks) + 1)[1:]:
        output.line(*line)
    for task in run.replaced:
        output.line("  ", Styled(f"replaced: {task.name} ({task.state})", "dim"))
    if run.replaced_more:
        output.line("  ", Styled(f"and {run.replaced_more} more that were replaced", "dim"))


def table(run: Run, now: str, columns: int, rows: int) -> list[list[Piece]]:
    """The run at log time ``now``: a heading, and its tasks. At most ``rows`` lines, none wider than ``columns``. Where
    not all tasks find room, those that run or failed come first, and the rest is counted."""
    lines = [_heading(run, now, columns)]
    pairs = run.pairs
    room = max(1, rows - 1)
    if len(pairs) > room:
        pairs = _foremost(pairs, room - 1)
    names = name_columns([planned.name for _, planned in pairs], NAME_COLUMNS_MAX)
    lines += [_row(run, task, planned, now, columns, names) for task, planned in pairs]
    if len(pairs) < len(run.tasks):
        lines.append(_rest(run, pairs, columns))
    return lines[:rows]


def _heading(run: Run, now: str, columns: int) -> list[Piece]:
    parts = [_count_words(run)] if run.tasks else []
    parts += [elapsed(run, now), *filter(None, [saying(run)])]
    return heading(RUNS, run, mark(run.word), parts, columns)


def _count_words(run: Run) -> str:
    counts = run.counts
    parts = [f"{counts['done']} of {len(run.tasks)} done"]
    return ", ".join(parts + [f"{counts[state]} {state}" for state in ("failed", "running") if counts[state]])


def _foremost(pairs: list[Pair], room: int) -> list[Pair]:
    running = [pair for pair in pairs if pair[0].state == "running"]
    failed = [pair for pair in pairs if pair[0].state == "failed" and pair[0].started]
    return (running + failed)[: max(0, room)]


def _row(run: Run, task: Task, planned: PlannedTask, now: str, columns: int, names: int) -> list[Piece]:
    sign = mark("retry" if task.retry_at else task.word)
    spent, most = took(task.started, task.ended or now), 1 + planned.constraints.max_retries
    attempts = f"{task.attempts}/{most}" if task.attempts > 1 or task.retry_at else ""
    cells = [
        f" {pad(planned.name, names)}", f"  {pad(task.word, STATE_COLUMNS)}", f"{spent:>{TIME_COLUMNS}}",
        f"  {attempts}" if attempts else "", f"  {_why(run, task, now)}",
    ]
    return fitted(sign, cells, columns)


def _why(run: Run, task: Task, now: str) -> str:
    if not task.retry_at:
        reason = task.reason if task.state in ("failed", "done") else ""
        return "  ".join(filter(None, (reason, cut_words(run, task))))
    left = seconds_between(now, task.retry_at)  # 0 where it is no time: it waits for the next start
    when = f"again in {spoken(max(0.0, left))}" if left else "again at the next start"
    return f"{when}: {task.reason}"


def _rest(run: Run, pairs: list[Pair], columns: int) -> list[Piece]:
    counts = run.counts
    counts.subtract(task.state for task, _ in pairs)
    words = [f"{count} {state}" for state in _ORDER if (count := counts[state]) > 0]
    more = "and" if pairs else "there are"
    return [Styled(shorten(f"   {more} {sum(counts.values())} more: {', '.join(words)}", columns), "dim")]


RUN: Final = Rendering(
    RUNS, exit_code, table, _entry, whole, summary, _details, wide=14, next="the next pmagent run", narrowed=narrowed
)
