"""Two runs held against each other: which tasks ended otherwise, took longer, left other files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from itertools import islice
from typing import Final

import msgspec

from pmagent.console.pages.jobs.run import exit_of, shown_state, task_address
from pmagent.console.pages.reading.outputs import decoded
from pmagent.contracts.orchestra_events import PlannedTask
from pmagent.events.errors import CorruptLog, NotFound
from pmagent.events.storage import Blobs
from pmagent.projections.views.runs import Run, Task
from pmagent.when import seconds_between, took

ROWS_MAX: Final = 500
DIFF_BYTES_MAX: Final = 256 * 1024
DIFF_LINES_MAX: Final = 2_000


class Side(msgspec.Struct, frozen=True):
    """A task in one of the runs; all empty where that has none of this name."""

    state: str = ""
    took: str = ""
    exit: str = ""
    address: str = ""


class TaskPair(msgspec.Struct, frozen=True):
    """A task of both runs. ``changes``: in words; ``files``: the names of files that both left, and otherwise."""

    name: str
    a: Side
    b: Side
    changes: list[str]
    files: list[str]


class RunPair(msgspec.Struct, frozen=True, kw_only=True):
    """Both runs. ``facts``: name, and what each says, where they differ; ``tasks`` that differ, ``alike`` others,
    ``left_out`` more that differ."""

    a: Run
    b: Run
    facts: list[tuple[str, str, str]]
    tasks: list[TaskPair]
    alike: int
    left_out: int


def compared(a: Run, b: Run) -> RunPair:
    """The differences, those of failed tasks first."""
    sides = [{planned.name: (task, planned) for task, planned in run.pairs} for run in (a, b)]
    files = [files_of(run) for run in (a, b)]
    found = []
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        pairs = [side.get(name) for side in sides]
        changed = [path for path, sha in files[0].items() if path.partition("/")[0] == name
                   and files[1].get(path, sha) != sha]  # fmt: skip
        changes = [*_changes(pairs[0], pairs[1]), *(f"{path.partition('/')[2]} differs" for path in changed)]
        if changes:
            shown = [_side(run, pair) for run, pair in zip((a, b), pairs, strict=True)]
            found.append(TaskPair(name, shown[0], shown[1], changes, changed))
    found.sort(key=lambda pair: "failed" not in (pair.a.state, pair.b.state))
    alike = len(sides[0].keys() | sides[1].keys()) - len(found)
    return RunPair(
        a=a, b=b, facts=list(_facts(a, b)), tasks=found[:ROWS_MAX], alike=alike, left_out=max(len(found) - ROWS_MAX, 0)
    )


def files_of(run: Run) -> dict[str, str]:
    """The files that a run's tasks left, ``task/path`` -> SHA-256."""
    return {
        f"{left.name}/{one.path.partition('/')[2]}": one.checksum for left in run.left for one in left.artifacts
    }  # fmt: skip


def difference(blobs: Blobs, a: str, b: str) -> list[tuple[str, str]]:
    """The lines in which two texts differ, with a few around them: sign and text. Raises NotFound: one of them is no
    text, too large, or gone."""
    before, after = (_lines(blobs, sha256) for sha256 in (a, b))
    told = islice(unified_diff(before, after, lineterm=""), 2, DIFF_LINES_MAX + 2)  # without the names of the files
    rows = [(line[:1], line[1:]) for line in told]
    return [("", text) if sign == "@" else (sign, text) for sign, text in rows]


def _lines(blobs: Blobs, sha256: str) -> list[str]:
    try:
        reader = blobs.reader(sha256)
        try:
            if reader.size > DIFF_BYTES_MAX:
                raise NotFound(f"a file of {reader.size} bytes is too large to be compared here", "download both")
            raw = b"".join(reader.pieces())
        finally:
            reader.close()
    except CorruptLog as error:
        raise NotFound(error.message, "pmagent log verify names what is damaged") from error
    if b"\x00" in raw:
        raise NotFound("a file that is no text has no lines to compare", "download both")
    return decoded(raw).splitlines()


def _side(run: Run, pair: tuple[Task, PlannedTask] | None) -> Side:
    if pair is None:
        return Side()
    task, planned = pair
    spent = took(task.started, task.ended) if task.ended else ""
    return Side(shown_state(task), spent, exit_of(task.exit_code), task_address(run.id, planned.task_id))


def _changes(a: tuple[Task, PlannedTask] | None, b: tuple[Task, PlannedTask] | None) -> Iterator[str]:
    if a is None or b is None:
        yield "only in the second" if a is None else "only in the first"
        return
    if a[0].state != b[0].state:
        yield f"{shown_state(a[0])}, then {shown_state(b[0])}"
    if a[0].exit_code != b[0].exit_code and None not in (a[0].exit_code, b[0].exit_code):
        yield "another exit code"
    if a[1].inputs != b[1].inputs or a[1].tools != b[1].tools:
        yield "another command"
    if a[0].attempts != b[0].attempts and a[0].attempts and b[0].attempts:
        yield f"{a[0].attempts}, then {b[0].attempts} attempts"
    spent = [seconds_between(task.started, task.ended) if task.ended else 0.0 for task in (a[0], b[0])]
    if min(spent) > 0 and max(spent) > 1 and max(spent) > 1.5 * min(spent):
        yield "took longer" if spent[1] > spent[0] else "took less"


def _facts(a: Run, b: Run) -> Iterator[tuple[str, str, str]]:
    values: Sequence[tuple[str, str, str]] = [
        ("State", a.word, b.word), ("Intent", a.asked.intent, b.asked.intent),
        ("Action class", a.asked.action, b.asked.action), ("Took", took(a.at, a.ended), took(b.at, b.ended)),
        ("Plan", _plan(a), _plan(b)),
        ("Configuration", "its own", "the same" if b.asked.config == a.asked.config else "another"),
    ]  # fmt: skip
    yield from (row for row in values if row[1] != row[2] and row[2] != "the same")


def _plan(run: Run) -> str:
    return run.plan.plan_id if run.plan is not None else "none"
