"""A run's order as a Mermaid chart and its times as bars of text; pure."""

from __future__ import annotations

from typing import Final

from pmagent.contracts.orchestra_events import PlannedTask
from pmagent.projections.core.markdown import cut, fenced, label
from pmagent.projections.runs.numbers import duration, milliseconds
from pmagent.projections.views.runs import Task

TASKS_MAX: Final = 120
EDGES_MAX: Final = 400
"""Of larger plans nothing is drawn: nobody could read it, and who shows charts refuses it."""
BARS_MAX: Final = 200
COLUMNS: Final = 50
_NAME_COLUMNS: Final = 32

_COLOURS: Final = {
    "planned": "fill:#eeeeee,stroke:#888888,color:#222222",
    "blocked": "fill:#fff3cd,stroke:#a07800,color:#222222",
    "running": "fill:#cfe2ff,stroke:#1a56b0,color:#222222",
    "done": "fill:#d1e7dd,stroke:#146c43,color:#222222",
    "failed": "fill:#f8d7da,stroke:#a02030,color:#222222",
}

Pairs = list[tuple[Task, PlannedTask]]


def chart(pairs: Pairs) -> list[str]:
    """The tasks and who waits for whom, as a flow chart coloured by state; [] where there are none."""
    edges = sum(len(planned.depends_on) for _, planned in pairs)
    if len(pairs) > TASKS_MAX or edges > EDGES_MAX:
        return [f"{len(pairs)} tasks that wait {edges} times for another are too many to be drawn; plan.json has them."]
    if not pairs:
        return []
    number = {planned.task_id: place for place, (_, planned) in enumerate(pairs)}
    lines = ["flowchart TD"]
    for place, (task, planned) in enumerate(pairs):
        lines.append(f"    t{place}[{label(f'{planned.name}: {planned.intent}')}]:::{task.state}")
    for place, (_, planned) in enumerate(pairs):
        lines += [f"    t{number[one]} --> t{place}" for one in planned.depends_on if one in number]
    used = dict.fromkeys(task.state for task, _ in pairs)
    lines += [f"    classDef {state} {_COLOURS[state]}" for state in used]
    return fenced(lines, "mermaid")


def waterfall(pairs: Pairs) -> list[str]:
    """When each task ran, in order of beginning, as bars over the whole time; [] where none has begun."""
    begun = sorted((pair for pair in pairs if pair[0].started), key=lambda pair: pair[0].started)
    if not begun:
        return []
    start = begun[0][0].started
    end = max(task.ended or task.started for task, _ in begun)
    whole = max(milliseconds(start, end), 1)
    lines = [f"{'':{_NAME_COLUMNS}}  {'0 s':<{COLUMNS // 2}}{f'{whole / 1000:.1f} s':>{COLUMNS - COLUMNS // 2}}"]
    for task, planned in begun[:BARS_MAX]:
        first = milliseconds(start, task.started)
        last = milliseconds(start, task.ended or end)
        left = min(first * COLUMNS // whole, COLUMNS - 1)
        bar = "·" * left + "█" * max(min(last * COLUMNS // whole, COLUMNS) - left, 1)
        took = duration(last - first) if task.ended else "runs"
        lines.append(f"{cut(planned.name, _NAME_COLUMNS):{_NAME_COLUMNS}}  {bar:·<{COLUMNS}}  {took}")
    more = len(begun) - BARS_MAX
    note = ["", f"{more} more tasks have begun, later than these; metrics.json has their times."] if more > 0 else []
    return [*fenced(lines), *note]
