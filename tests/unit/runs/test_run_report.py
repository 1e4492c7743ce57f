"""The report of a run: what it says, that hostile text stays text in it, and that it stays readable."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pmagent.contracts.orchestra_events import RunEnded, RunRequested, TaskExited
from pmagent.events.event import Event
from pmagent.projections.core.markdown import cut, visible
from pmagent.projections.runs.charts import BARS_MAX, COLUMNS, TASKS_MAX
from pmagent.projections.runs.numbers import duration
from pmagent.projections.runs.report import ROWS_MAX, TRIED_MAX
from tests.support.cases import each
from tests.support.hostile import CORPUS, assert_harmless
from tests.support.orchestra import RUN, Harness, config, exited, plan
from tests.support.run_folders import (
    LOG_ID,
    PLAIN,
    artifact,
    cells,
    ended,
    every,
    fences,
    folded,
    headings,
    parsed,
    shown,
    skeleton,
    text,
)

HOSTILE = {
    **CORPUS,
    "html": "<script>alert(1)</script><a href=x>y</a><!--",
    "links": "[x](javascript:alert(1)) ![y](http://e.example) <http://e.example> http://e.example",
    "fences": "```\n````\n~~~\n`````text\n",
    "blocks": "# head\n\n> quote\n\n- list\n\n| a | b |\n| - | - |\n\n---\n",
    "mermaid": '"] --> t9["x"]\nclick t0 "javascript:alert(1)"\nend\n%%{init: {"securityLevel": "loose"}}%%',
}


def reported(harness: Harness) -> str:
    return text(harness.history, "report.md")


def failing(event: Event) -> TaskExited:
    """Fails twice, with what a tool may say."""
    return exited(
        event, 3 if event.data.attempt < 3 else 0, last_lines=["first", "the last"],
        artifacts=[artifact(event.data.task_id, "out/a b.txt", b"1234")], notes=["not limited here: memory"],
    )  # fmt: skip


def test_a_report_tells_the_run_with_its_place_in_the_log(harness: Harness) -> None:
    harness.tool = failing
    harness.request({"a": [], "b": ["a"]}, config=config(retries=1))
    assert ended(harness) == "failed"
    report = reported(harness)
    assert headings(report) == [
        "Run: do it", "Intent", "Why", "Facts", "Tasks", "Order", "Time", "Attempts", "Failures", "a", "Artifacts",
        "Not enforced, or not kept",
    ]  # fmt: skip
    facts = {row[0]: row[1] for row in cells(report, "Facts")}
    (last,) = harness.events(RunEnded)
    assert facts["Run, and trace id"] == RUN
    assert facts["Log"] == LOG_ID
    assert facts["Last event"] == f"position {last.position} of the log".removesuffix(" of the log")
    assert facts["Its sum"] == f"{last.position:064x}"
    assert facts["Requested"] == harness.events(RunRequested)[0].time
    assert facts["Tasks"] == "2: 2 failed"
    assert re.fullmatch("position [0-9]+ of the log", facts["Permit"])
    assert cells(report, "Tasks") == [
        ["a", "do a", "echo", "failed", "2", "500 ms"], ["b", "do b", "echo", "failed", "0", "-"]
    ]
    attempts = cells(report, "Attempts")
    assert [row[:2] + row[4:5] for row in attempts] == [
        ["a", "1", "exit code 3: the last"], ["a", "2", "exit code 3: the last"]
    ]
    assert attempts[0][5] > attempts[0][3]
    assert attempts[1][5] == "-"
    assert ["first", "the last"] in fences(report, "text")
    (row,) = cells(report, "Artifacts")
    assert row[0] == "a"
    assert row[1].endswith("/out/a b.txt")
    assert row[2:] == ["4", artifact("x", "y", b"1234").checksum]


def test_the_order_is_drawn_with_a_colour_for_each_state(harness: Harness) -> None:
    harness.tool = failing
    harness.request({"a": [], "b": ["a"], "c": []}, config=config(retries=2))
    harness.run()
    (lines,) = fences(reported(harness), "mermaid")
    assert lines[:4] == [
        "flowchart TD", '    t0["a#58; do a"]:::done', '    t1["b#58; do b"]:::done', '    t2["c#58; do c"]:::done'
    ]
    assert lines[4] == "    t0 --> t1"
    assert re.fullmatch("    classDef done fill:#[0-9a-f]{6},stroke:#[0-9a-f]{6},color:#[0-9a-f]{6}", lines[5])
    assert len(lines) == 6


def test_bars_show_when_each_task_ran(harness: Harness) -> None:
    harness.tool = failing
    harness.request({"a": [], "b": ["a"]})
    harness.run()
    lines = next(lines for lines in fences(reported(harness), "text") if "█" in "".join(lines))
    bars = [line[34 : 34 + COLUMNS] for line in lines[1:]]
    half = COLUMNS // 2
    assert bars == ["█" * half + "·" * half, "·" * half + "█" * half]
    assert [line.split()[-2:] for line in lines[1:]] == [["6.0", "s"], ["6.0", "s"]]


def test_it_stands_at_every_event_and_is_the_same_for_the_same_events(harness: Harness) -> None:
    harness.tool = failing
    harness.request({"a": [], "b": ["a"]})
    harness.run()
    documents = folded([])
    for number, event in enumerate(harness.history, 1):
        folded([event], documents)
        if (found := shown(documents).get(f"runs/{RUN}/report.md")) is not None:
            assert isinstance(found, bytes)
            assert {token.type for token in every(parsed(found.decode()))} <= PLAIN
            assert found == shown(folded(harness.history[:number]))[f"runs/{RUN}/report.md"]


def hostile_run(text: str) -> Harness:
    """A run in which everything that may be hostile is ``text``."""
    harness = Harness()
    part = text.replace("\x00", "")[:900]

    def tool(event: Event) -> TaskExited:
        contact = {"host": part, "port": 443, "address": "", "verdict": "refused", "reason": part, "bytes_out": 1,
                   "bytes_in": 2}  # fmt: skip
        name = re.sub(r"[/\x00-\x1f\x7f-\x9f]", "", text)[:60] or "x"
        outcome = exited(
            event, 3, last_lines=text.split("\n")[:20], notes=[part], violations=[part],
            artifacts=[artifact(event.data.task_id, name)],
        )  # fmt: skip
        return msgspec.convert(msgspec.to_builtins(outcome) | {"contacts": [contact]}, TaskExited)

    harness.tool = tool
    task: dict[str, Any] = {"intent": f"x{text}"[:16_000], "inputs": {"args": [part]}}
    given = plan({"a": [], "b": ["a"]}, a=task, b=task)
    asked = RunRequested(run_id=RUN, intent=task["intent"], plan=given, config=config(retries=0))
    harness.tell(asked, RUN, RUN)
    harness.run()
    return harness


@each("text", HOSTILE.values())
def test_hostile_text_stays_text(text: str) -> None:
    report = reported(hostile_run(text))
    plain = reported(hostile_run("harmless"))
    assert skeleton(report) == skeleton(plain)
    assert {token.type for token in every(parsed(report))} <= PLAIN
    assert headings(report)[1:] == headings(plain)[1:]
    assert_harmless("\n".join(f"| {line}" for line in report.split("\n")).encode())
    assert cells(report, "Tasks")[0][1].split() == visible(cut(f"x{text}", 120)).split()
    mermaid = fences(report, "mermaid")
    assert len(mermaid) == 1
    assert [line.split("[")[0] for line in mermaid[0]] == [line.split("[")[0] for line in fences(plain, "mermaid")[0]]
    for line in mermaid[0][1:3]:
        assert re.fullmatch(r'    t[01]\["(?:[0-9A-Za-z ._,-]|[^\x00-\x7f]|#[0-9]+;)*"\]:::failed', line)


def test_of_a_large_plan_only_so_much_is_told_and_that_is_said(harness: Harness) -> None:
    count = ROWS_MAX + 100
    names = [f"t{number:04}" for number in range(count)]
    bad = {f"t{number:04}" for number in range(0, count, 4)}
    ids: dict[str, str] = {}

    def tool(event: Event) -> TaskExited:
        if not ids:
            made = next(e.data for e in harness.history if e.type == "tasks.planned")
            ids.update({task.task_id: task.name for task in made.tasks})
        return exited(
            event, 1 if ids[event.data.task_id] in bad else 0, artifacts=[artifact(event.data.task_id, "stdout")]
        )

    harness.tool = tool
    harness.request({name: [] for name in names}, config=config(retries=0, workers=50))
    assert ended(harness) == "failed"
    report = reported(harness)
    rows = cells(report, "Tasks")
    assert len(rows) == ROWS_MAX
    assert {row[0] for row in rows if row[3] == "failed"} == bad
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert "100 more tasks are left out here" in report
    assert fences(report, "mermaid") == []
    assert f"{count} tasks that wait 0 times for another are too many to be drawn" in report
    assert len(next(lines for lines in fences(report, "text") if "█" in "".join(lines))) == BARS_MAX + 1
    assert f"{count - BARS_MAX} more tasks have begun" in report
    assert len(cells(report, "Artifacts")) == ROWS_MAX
    assert f"{count - ROWS_MAX} more artifacts are left out here" in report
    assert len(cells(report, "Attempts")) == TRIED_MAX
    assert f"{len(bad) - TRIED_MAX} more tasks failed, which are left out here" in report
    assert len(report) < 400_000


def test_a_plan_with_many_edges_is_not_drawn(harness: Harness) -> None:
    firsts: dict[str, list[str]] = {f"a{number}": [] for number in range(21)}
    harness.request({**firsts, **{f"b{number}": list(firsts) for number in range(20)}}, plan_only=True)
    assert ended(harness) == "planned"
    assert len(firsts) + 20 < TASKS_MAX
    assert "41 tasks that wait 420 times for another are too many to be drawn" in reported(harness)


@each(
    "milliseconds, told",
    [
        (0, "0 ms"), (999, "999 ms"), (1_000, "1.0 s"), (59_949, "59.9 s"), (60_000, "1 min 00 s"),
        (3_725_000, "62 min 05 s"),
    ],
)
def test_times_are_told_for_people(milliseconds: int, told: str) -> None:
    assert duration(milliseconds) == told
