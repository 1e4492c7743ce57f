"""``report.md``: a run told to people; pure, and the same bytes for the same events.

Intents, arguments, names of files and what tools wrote are hostile: all of it passes
``pmagent.projections.core.markdown``.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Final

from pmagent.contracts.orchestra_events import PlannedTask
from pmagent.projections.core.markdown import code, cut, fenced, inline, table
from pmagent.projections.runs.charts import chart, waterfall
from pmagent.projections.runs.numbers import duration, retries, run_metrics
from pmagent.projections.runs.paths import run_paths
from pmagent.projections.views.runs import Counted, Run, Task

ROWS_MAX: Final = 500
"""So many rows a table has at most; what is left out is said."""
TRIED_MAX: Final = 100
"""Attempts are told of so many tasks."""
INTENT_LINES_MAX: Final = 60

_STATES: Final = {
    "planned": "planned; nothing was run",
    "done": "done",
    "failed": "failed",
    "cancelled": "cancelled",
    "timed_out": "out of time",
    "stopped": "stopped: the OA took its permit back",
    "refused": "refused",
}
_DOING: Final = {
    "planning": "open: a plan is being made",
    "permit": "open: waiting for the OA's permit",
    "running": "open: running",
    "stopping": "open: stopping",
}

NONE: Final = "-"

Pairs = list[tuple[Task, PlannedTask]]


def report(run: Run, log_id: str) -> bytes:
    """The report of a run as it stands, or stood at its end."""
    pairs: Pairs = run.pairs
    sections = (
        _head(run), _intent(run), _reasons(run), _facts(run, log_id), _tasks(pairs), _order(pairs), _times(pairs),
        _attempts(pairs), _failures(run, pairs), _artifacts(run), _revisions(run), _remarks(run), _network(run),
    )  # fmt: skip
    return ("\n\n".join("\n".join(section) for section in sections if section) + "\n").encode()


def state_of(run: Run) -> str:
    """How the run stands, in words."""
    return _STATES[run.end] if run.end else _DOING[run.doing]


def _head(run: Run) -> list[str]:
    first = next((line for line in run.asked.intent.splitlines() if line.strip()), "")
    return [f"# Run: {inline(first, 100)}", "", f"**{inline(state_of(run))}**"]


def _intent(run: Run) -> list[str]:
    lines = run.asked.intent.splitlines()
    intent = [cut(line, 1_000) for line in lines[:INTENT_LINES_MAX]]
    more = [f"… {len(lines) - INTENT_LINES_MAX} more lines"] if len(lines) > INTENT_LINES_MAX else []
    return ["## Intent", "", *fenced([*intent, *more])]


def _reasons(run: Run) -> list[str]:
    if not run.reasons:
        return []
    mends = ["", "What would mend it:", "", *_items(run.mend)] if run.mend else []
    security = ["", "**This was a violation of security.**"] if run.security else []
    return ["## Why", "", *_items(run.reasons), *mends, *security]


def _items(texts: Iterable[str]) -> list[str]:
    return [f"- {inline(text, 1_000)}" for text in texts]


def _facts(run: Run, log_id: str) -> list[str]:
    numbers = run_metrics(run)
    asked = run.asked
    rows = [
        ("Run, and trace id", code(run.id)),
        ("Requested", run.at),
        ("Begun", run.begun or NONE),
        ("Ended", run.ended or NONE),
        ("Duration", duration(numbers.total_duration_ms) if numbers.total_duration_ms is not None else NONE),
        ("Action class", code(asked.action)),
        ("Permit", f"position {run.permit} of the log" if run.permit else NONE),
        ("Plan", f"as given: {inline(asked.source, 200)}" if run.given else "made by the planner"),
        ("Tools", "simulated: nothing was run" if asked.dry_run else "run in the sandbox"),
        ("Tasks", _counts(run)),
        ("Tokens", "not told" if numbers.total_tokens_used is None else str(numbers.total_tokens_used)),
        ("Artifacts", f"{numbers.artifacts_total_bytes} bytes"),
        ("Log", code(log_id)),
        ("Last event", f"position {run.position}"),
        ("Its sum", code(run.sum)),
    ]
    if asked.earlier is not None:
        rows.append(("Repeats", f"run {code(asked.earlier.run_id)}, {len(asked.done)} tasks taken from it"))
    asking = run.asking
    if asking.calls:
        cost = "" if asking.cost_usd is None else f", {asking.cost_usd:.4f} USD"
        rows.append(("Planner", f"{asking.calls} calls, {duration(asking.duration_ms)}{cost}"))
    return ["## Facts", "", *table(("What", "Value"), rows)]


def _counts(run: Run) -> str:
    states = [task.state for task in run.tasks]
    counts = [f"{states.count(state)} {state}" for state in ("done", "failed", "running", "blocked", "planned")]
    return f"{len(states)}: {', '.join(one for one in counts if not one.startswith('0 '))}" if states else "none"


def _tasks(pairs: Pairs) -> list[str]:
    if not pairs:
        return []
    shown = pairs
    if len(pairs) > ROWS_MAX:  # what went well can be missed
        shown = sorted(pairs, key=lambda pair: pair[0].state == "done")[:ROWS_MAX]
        chosen = {planned.task_id for _, planned in shown}
        shown = [pair for pair in pairs if pair[1].task_id in chosen]
    rows = (
        (
            code(planned.name),
            inline(planned.intent, 120),
            code(cut(shlex.join([planned.tools[0], *planned.inputs.args]), 160)),
            task.word,
            str(task.attempts),
            duration(task.duration_ms) if task.attempts else NONE,
        )
        for task, planned in shown
    )
    return [
        "## Tasks", "", *table(("Task", "Intent", "Program", "State", "Attempts", "Duration"), rows),
        *_left_out(len(pairs) - len(shown), "tasks", "metrics.json has all of them"),
    ]  # fmt: skip


def _left_out(count: int, what: str, where: str) -> list[str]:
    return ["", f"{count} more {what} are left out here; {where}."] if count > 0 else []


def _order(pairs: Pairs) -> list[str]:
    drawn = chart(pairs)
    return ["## Order", "", *drawn] if drawn else []


def _times(pairs: Pairs) -> list[str]:
    drawn = waterfall(pairs)
    return ["## Time", "", *drawn] if drawn else []


def _attempts(pairs: Pairs) -> list[str]:
    """Of tasks that did not do what they should at once."""
    tried = [(task, planned) for task, planned in pairs if any(one.reason for one in task.tries)]
    rows: list[tuple[str, ...]] = []
    for task, planned in tried[:TRIED_MAX]:
        for one in task.tries:
            ends = one.reason or ("ended well" if one.ended else "is running")
            times = (one.at, one.ended or NONE, inline(ends, 300), one.retry_at or NONE)
            rows.append((code(planned.name), str(one.attempt), *times))
    if not rows:
        return []
    heads = ("Task", "Attempt", "Began", "Ended", "What became of it", "Again")
    used = sum(retries(task, planned) for task, planned in pairs)
    return [
        "## Attempts", "", f"Retries used: {used}.", "", *table(heads, rows),
        *_left_out(len(tried) - TRIED_MAX, "tasks", "tasks.jsonl has every attempt"),
    ]  # fmt: skip


def _failures(run: Run, pairs: Pairs) -> list[str]:
    failed = [(task, planned) for task, planned in pairs if task.state == "failed" and task.attempts]
    if not failed:
        return []
    lines = ["## Failures"]
    for task, planned in failed[:TRIED_MAX]:
        lines += ["", f"### {inline(planned.name)}", "", inline(task.reason, 1_000) or "no reason is known"]
        if last_lines := run.last_lines.get(planned.task_id):
            lines += ["", "Its last lines:", "", *fenced(last_lines)]
    return [*lines, *_left_out(len(failed) - TRIED_MAX, "tasks failed, which", "tasks.jsonl has every reason")]


def _artifacts(run: Run) -> list[str]:
    at = run_paths(run.asked.config.paths, run.id)
    found = list(_left(run))
    if not found:
        return []
    rows = ((code(name), code(path, 255), size, code(checksum)) for name, path, size, checksum in found[:ROWS_MAX])
    return [
        "## Artifacts", "", f"In {code(at.artifacts, 1_100)}, in a folder for each task.", "",
        *table(("Task", "Path", "Bytes", "SHA-256"), rows),
        *_left_out(len(found) - ROWS_MAX, "artifacts", "they lie in the same folder"),
    ]  # fmt: skip


def _left(run: Run) -> Iterator[tuple[str, str, str, str]]:
    for left in run.left:
        for one in left.artifacts:
            gap = f", {one.gap_bytes} missing" if one.gap_bytes else ""
            yield left.name, one.path, f"{one.size_bytes}{gap}", one.checksum


def _revisions(run: Run) -> list[str]:
    if len(run.revisions) < 2:
        return []
    rows = ((str(one.revision), one.at, code(one.plan_id), str(one.tasks), str(one.kept)) for one in run.revisions)
    lines = ["## Plans", "", *table(("Revision", "Made", "Plan", "New tasks", "Kept tasks"), rows)]
    if run.replaced:
        gone = ((code(one.name), str(one.revision), inline(one.reason, 300) or NONE) for one in run.replaced)
        lines += ["", "Tasks that a later plan replaced:", "", *table(("Task", "Of revision", "Why"), gone)]
    return [*lines, *_left_out(run.replaced_more, "replaced tasks", "tasks.jsonl names them")]


def _remarks(run: Run) -> list[str]:
    at = run_paths(run.asked.config.paths, run.id)
    notes = run.notes
    if at.moved:
        notes = notes.noted("paths in the configuration cannot be used; documents lie where pmagent puts them")
    lines: list[str] = []
    for title, counted in (("Violations", run.violations), ("Not enforced, or not kept", notes)):
        if counted.texts:
            lines += [*([""] if lines else []), f"## {title}", "", *_items(counted.texts), *_more(counted)]
    return lines


def _more(counted: Counted) -> list[str]:
    return [f"- and {counted.more} more"] if counted.more else []


def _network(run: Run) -> list[str]:
    if not run.contacts:
        return []
    rows = (
        (
            code(f"{one.host}:{one.port}"), one.verdict, inline(one.reason, 200) or NONE, str(one.count),
            str(one.bytes_out), str(one.bytes_in),
        )
        for one in run.contacts
    )  # fmt: skip
    heads = ("Host", "Verdict", "Reason", "Connections", "Bytes out", "Bytes in")
    return ["## Network", "", *table(heads, rows), *_left_out(run.contacts_more, "connections", "the log has them")]
