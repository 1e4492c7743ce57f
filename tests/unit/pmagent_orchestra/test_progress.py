"""The view of a run shows what its events say: folded from histories that the real actors made."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.clean import width
from pmagent.cli.job_text import change_line
from pmagent.cli.output import Piece, Styled, _line
from pmagent.cli.run_text import document, exit_code, levels, table
from pmagent.contracts.orchestra_events import RunCancelRequested, TaskAttemptRequested, TaskUnstarted
from pmagent.events.event import Event
from pmagent.jobs.kinds import RUNS
from pmagent.projections.views.jobs import Change
from pmagent.projections.views.runs import Run
from tests.support.cases import each
from tests.support.effort import examples
from tests.support.hostile import CORPUS, assert_harmless
from tests.support.orchestra import RUN, Harness, config, exited, replied


def folded(harness: Harness, until: int | None = None) -> tuple[Run, list[Change]]:
    """The run of the harness, and what was told of it."""
    mine = [event for event in harness.history if event.correlation == RUN]
    run: Run = RUNS.begun(mine[0], "")
    changes: list[Change] = []
    for event in mine[1:until]:
        if not run.over:
            run, made = RUNS.folded(run, event, "")
            changes += made
    return run, changes


def words(changes: list[Change]) -> list[tuple[str, str]]:
    """The names of the tasks, and their words."""
    return [(change.name, change.word) for change in changes]


def text(pieces: list[Piece]) -> str:
    """A line without its styles."""
    return "".join(piece.text if isinstance(piece, Styled) else piece for piece in pieces)


def failing(*names: str) -> Harness:
    """A harness whose tools of these names fail."""
    harness = Harness()

    def tool(event: Event) -> object:
        given = next(one for one in harness.events(type(event.data)) if one.position == event.position)
        assigned = next(one for one in harness.history if one.position == given.data.assigned)
        return exited(event, 3 if assigned.data.name in names else 0, last_lines=["no luck"])

    harness.tool = tool  # type: ignore[assignment]
    return harness


def test_tasks_are_told_from_their_start_to_their_end(harness: Harness) -> None:
    harness.request({"a": [], "b": ["a"]})
    harness.run()
    run, changes = folded(harness)
    assert words(changes) == [
        ("", "planned"), ("", "running"), ("a", "running"), ("a", "done"), ("b", "running"), ("b", "done"),
        ("", "done"),
    ]
    assert (run.state, run.over, exit_code(run)) == ("done", True, 0)
    assert run.counts == Counter(done=2)
    assert levels(run) == [["a"], ["b"]]


def test_a_task_that_is_tried_again_says_why_and_when() -> None:
    harness = failing("a")
    harness.request({"a": [], "b": ["a"]}, config=config(retries=1, base=5))
    while not any(task.retry_at for task in folded(harness)[0].tasks):
        assert harness.step()
    run, changes = folded(harness)
    assert changes[-1].text == "attempt 1: exit code 3: no luck"
    rows = [text(line) for line in table(run, run.updated, 100, 20)]
    assert "again in 5.00s: exit code 3: no luck" in rows[1]
    assert "1/2" in rows[1]

    harness.run()
    run, changes = folded(harness)
    assert words(changes)[-3:] == [("a", "failed"), ("b", "failed"), ("", "failed")]
    assert changes[-2].text == "dependency failed"
    assert (exit_code(run), run.reasons) == (1, ["2 of 2 tasks failed"])
    tasks = {task["name"]: task for task in document(run)["tasks"]}
    assert (tasks["a"]["attempts"], tasks["a"]["exit_code"], tasks["b"]["attempts"]) == (2, 3, 0)
    assert tasks["a"]["reason"] == "exit code 3: no luck"


def test_a_cancelled_run_a_run_out_of_time_and_a_violation_have_their_codes() -> None:
    codes = {}
    for how in ("cancel", "time", "violation"):
        harness = Harness()
        harness.request({"a": []}, config=config(total=60))
        if how == "violation":
            harness.tool = lambda event: exited(event, 0, violations=["it escaped"])
        else:
            harness.tool = lambda _: None
        if how == "cancel":
            harness.tell(RunCancelRequested(run_id=RUN), "cancel-1")
        harness.step()
        if how == "time":
            harness.wake()
        for event in harness.open(TaskAttemptRequested):
            harness.end(event, exited(event, None))
        run, _ = folded(harness)
        codes[how] = (run.state, exit_code(run))
    assert codes == {"cancel": ("cancelled", 1), "time": ("timed_out", 6), "violation": ("failed", 7)}


def test_a_refusal_has_its_reasons_and_what_mends_them() -> None:
    harness = Harness("DEGRADED")
    harness.request({"a": []})
    run, changes = folded(harness)
    assert (run.state, run.word, exit_code(run)) == ("refused", "refused", 1)
    assert run.reasons
    assert words(changes)[-1] == ("", "refused")
    assert document(run)["done"] == 0


def test_a_plan_with_a_forbidden_tool_is_a_security_refusal(harness: Harness) -> None:
    harness.planner = lambda event: replied(event, '[{"task_id": "a", "intent": "x", "tools": ["rm"]}]')
    harness.request(None)
    while not folded(harness)[0].over:
        assert harness.step()
    run, changes = folded(harness)
    assert exit_code(run) == 7
    assert [change.text for change in changes if change.word == "planning"] == [
        "asking the planner", "asking the planner, attempt 2", "asking the planner, attempt 3",
    ]


def test_of_a_replanned_run_the_last_plan_is_shown_and_what_it_replaced_is_kept() -> None:
    harness = failing("b")
    other = '[{"task_id": "c", "intent": "x", "tools": ["echo"], "depends_on": ["a"]}]'
    harness.planner = lambda event: replied(event, other)
    harness.request({"a": [], "b": ["a"]}, config=config(retries=0), replans=1)
    harness.run()
    run, changes = folded(harness)
    assert run.state == "done"
    assert [planned.name for planned in run.planned_tasks] == ["a", "c"]
    assert [(task.name, task.state) for task in run.replaced] == [("b", "failed")]
    assert ("", "replanning") in words(changes)


def test_where_no_other_plan_is_found_what_failed_is_shown_as_failed() -> None:
    harness = failing("b")
    harness.planner = lambda event: replied(event, "I would rather not.")
    harness.request({"a": [], "b": ["a"], "c": ["b"]}, config=config(retries=0), replans=1)
    harness.run()
    run, _ = folded(harness)
    assert run.state == "failed"
    assert [(planned.name, task.state) for task, planned in run.pairs] == [
        ("a", "done"), ("b", "failed"), ("c", "failed"),
    ]  # fmt: skip
    assert (run.counts["done"], run.counts["failed"], run.replaced) == (1, 2, [])


def test_a_plan_only_run_is_done_when_it_is_planned(harness: Harness) -> None:
    harness.request({"a": [], "b": []}, plan_only=True)
    run, _ = folded(harness)
    assert (run.state, exit_code(run)) == ("planned", 0)
    assert document(run)["levels"] == [["a", "b"]]


@settings(max_examples=examples(60))
@given(
    count=st.integers(0, 40), failed=st.sets(st.integers(0, 39)), until=st.integers(1, 200),
    columns=st.integers(1, 140), rows=st.integers(1, 50),
)
def test_the_table_fits_any_terminal(count: int, failed: set[int], until: int, columns: int, rows: int) -> None:
    harness = failing(*(f"t{number}" for number in failed))
    waits = {f"t{number}": [f"t{number // 2}"] if number else [] for number in range(count)}
    harness.request(waits or {"t": []}, config=config(retries=0))
    harness.run()
    run, _ = folded(harness, until)
    drawn = table(run, harness.history[-1].time, columns, rows)
    assert 1 <= len(drawn) <= rows
    assert all(width(text(line)) <= columns for line in drawn)
    assert sum(run.counts.values()) == len(run.tasks)


def test_where_there_is_little_room_what_runs_and_what_failed_comes_first() -> None:
    harness = failing("t3")
    harness.request({f"t{number}": [] for number in range(30)}, config=config(retries=0, workers=6))
    for _ in range(6):
        harness.step()
    run, _ = folded(harness)
    rows = [text(line) for line in table(run, run.updated, 100, 10)]
    assert [row.split()[1] for row in rows[1:-1]] == ["t6", "t7", "t8", "t9", "t10", "t11", "t3"]
    assert rows[-1].strip() == "and 23 more: 5 done, 18 planned"


@each("name", CORPUS)
def test_hostile_reasons_stay_on_their_line(name: str) -> None:
    harness = Harness()
    harness.tool = lambda event: TaskUnstarted(
        request=event.position, run_id=event.data.run_id, task_id=event.data.task_id, attempt=event.data.attempt,
        reason=CORPUS[name][:900], mend="", security=False, again=False,
    )
    harness.request({"a": []})
    harness.run()
    run, changes = folded(harness)
    lines = [*table(run, run.updated, 80, 20), *(change_line(change, "run") for change in changes)]
    for line in lines:
        raw = _line(line, color=False, encoding="utf-8")
        assert raw.count(b"\n") == 1
        assert_harmless(raw)
    assert all(width(text(line)) <= 80 for line in lines[:2])
