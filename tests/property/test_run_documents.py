"""The documents of runs have their shapes, whatever happens, and are the same however the log was folded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pmagent.contracts.content import BlobContent
from pmagent.contracts.effect import EffectCancelled, EffectFailed, EffectInterrupted
from pmagent.contracts.orchestra_events import (
    PlannerCallRequested,
    RunCancelRequested,
    TaskAttemptRequested,
    TaskFinished,
    TaskUnstarted,
)
from pmagent.events.event import Event
from pmagent.projections.core.documents import Documents
from pmagent.projections.core.markdown import HIDDEN
from pmagent.projections.runs.folders import RunFolders
from pmagent.projections.runs.numbers import task_documents
from tests.support.effort import examples
from tests.support.hostile import CORPUS
from tests.support.orchestra import Harness, config, exited, plan, replied
from tests.support.run_folders import PLAIN, artifact, copied, every, folded, parsed, schema, shown, sums

NAMES = "abcdef"
TEXTS = st.sampled_from(["plain", *(text[:300] for text in CORPUS.values())])
PLANNED = '[{"task_id": "x", "intent": "i", "tools": ["echo"]}, {"task_id": "y", "intent": "j", "tools": ["ls"]}]'
Act = Callable[[Harness], None]


def run_id(number: int) -> str:
    return f"5b0c7a52-3f7e-4c1d-9a55-{number:012}"


@st.composite
def requests(draw: st.DrawFn) -> Act:
    """A run is asked for, by an id that may be taken."""
    number = draw(st.integers(0, 3))
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    waits = {name: draw(st.sets(st.sampled_from(names[:at]))) if at else set() for at, name in enumerate(names)}
    intent = "x" + draw(TEXTS)
    asked: dict[str, Any] = {
        "replans": draw(st.integers(0, 2)), "plan_only": draw(st.integers(0, 9)) == 0,
        "config": config(
            f"telemetry:\n  level: {draw(st.sampled_from(['debug', 'info', 'error']))}",
            workers=draw(st.integers(1, 3)), retries=draw(st.integers(0, 2)),
        ),
    }  # fmt: skip
    given = plan({name: sorted(needed) for name, needed in waits.items()}, a={"intent": intent})
    if draw(st.integers(0, 4)) == 0:
        given = None  # type: ignore[assignment]
    return lambda harness: None if harness.over(run_id(number)) else _asked(harness, given, run_id(number), asked)


def _asked(harness: Harness, given: Any, run: str, asked: dict[str, Any]) -> None:
    harness.request(given, run, **asked)


def outcome(event: Event, kind: str, said: str) -> msgspec.Struct:
    request, own = event.position, event.data
    match kind:
        case "interrupted" | "stop":
            return EffectInterrupted(request=request, reason="crash" if kind == "interrupted" else "stop")
        case "cancelled":
            return EffectCancelled(request=request, reason=said[:100])
        case "broken":
            return EffectFailed(request=request, error="OSError", place="x:1")
        case "unstarted":
            return TaskUnstarted(
                request=request, run_id=own.run_id, task_id=own.task_id, attempt=own.attempt, reason=said[:500],
                mend="m", security=False, again=False,
            )
    code = {"done": 0, "failed": 7, "killed": None}.get(kind, 0)
    more: dict[str, Any] = {"violations": [said]} if kind == "violation" else {}
    more["notes"] = [said]
    more["last_lines"] = said.split("\n")[:20]
    more["artifacts"] = [artifact(own.task_id, name, said.encode()) for name in ("stdout", "out/x", "out")]
    return exited(event, code, **more)


@st.composite
def attempts(draw: st.DrawFn) -> Act:
    """The oldest, or newest, attempt ends."""
    kinds = ["done"] * 6 + ["failed", "killed", "violation", "unstarted", "interrupted", "stop", "cancelled", "broken"]
    kind, said, last = draw(st.sampled_from(kinds)), draw(TEXTS), draw(st.booleans())

    def act(harness: Harness) -> None:
        if found := harness.open(TaskAttemptRequested):
            harness.end(found[-last], outcome(found[-last], kind, said))

    return act


def _woken(harness: Harness) -> None:
    harness.wake()


def _planned(harness: Harness) -> None:
    for event in harness.open(PlannerCallRequested)[:1]:
        harness.end(event, replied(event, PLANNED))


def _misplanned(harness: Harness) -> None:
    for event in harness.open(PlannerCallRequested)[:1]:
        harness.end(event, replied(event, "```\nno plan <b>"))


def _cancelled(harness: Harness) -> None:
    harness.tell(RunCancelRequested(run_id=run_id(0), reason="enough <b>`"))


def _restarted(harness: Harness) -> None:
    harness.start()
    harness.observe("NORMAL")


OTHERS: list[Act] = [
    _woken, _planned, _planned, _misplanned, _cancelled, _restarted,
    lambda harness: harness.observe("BLOCKED"), lambda harness: harness.observe("NORMAL"),
]  # fmt: skip
ACTS = st.lists(st.one_of(requests(), attempts(), attempts(), attempts(), st.sampled_from(OTHERS)), max_size=40)


def history(acts: list[Act], first: Act) -> list[Event]:
    harness = Harness()
    for act in [first, *acts]:
        act(harness)
    return harness.history


def check_shapes(documents: Documents) -> None:
    """Every document is what its kind has to be."""
    for path, content in shown(documents).items():
        name = path.rpartition("/")[2]
        if isinstance(content, BlobContent):
            assert "/artifacts/" in path
            continue
        text = content.decode()
        assert text.endswith("\n") or (not text and name == "tasks.jsonl")
        if path.startswith("jobs/"):
            schema("job/job_status")(json.loads(text))
        elif name in SCHEMAS:
            lines = text.splitlines() if name == "tasks.jsonl" else [text]
            for line in lines if name != "config.yaml" else []:
                schema(SCHEMAS[name])(json.loads(line))
            if name == "config.yaml":
                schema(SCHEMAS[name])(yaml.safe_load(text))
            assert name == "config.yaml" or not HIDDEN.search(text.replace("\n", ""))
        else:
            assert name == "report.md"
            assert {token.type for token in every(parsed(text))} <= PLAIN


SCHEMAS = {
    "config.yaml": "orchestra/config", "plan.json": "orchestra/plan_answer", "tasks.jsonl": "orchestra/log_line",
    "metrics.json": "orchestra/metrics",
}  # fmt: skip


@given(ACTS, requests())
@settings(max_examples=examples(80), deadline=None)
def test_documents_have_their_shapes_whatever_happens(acts: list[Act], first: Act) -> None:
    documents = folded(history(acts, first))
    check_shapes(documents)
    validate = schema("orchestra/task")
    for run in documents._states["run_folders"].jobs.values():
        for document in task_documents(run):
            validate(json.loads(msgspec.json.encode(document)))


@given(ACTS, requests(), st.integers(1, 3), st.integers(1, 30))
@settings(max_examples=examples(80), deadline=None)
def test_documents_are_the_same_however_the_log_was_folded(acts: list[Act], first: Act, kept: int, piece: int) -> None:
    """At once, or in pieces with starts from the snapshot cache in between; at the end, or given out before."""
    events = history(acts, first)
    whole = folded([], Documents([RunFolders(kept)]))
    given_out: dict[str, Any] = {}
    pieces = folded([], Documents([RunFolders(kept)]))
    on_disk: dict[str, Any] = {}
    for event in events:
        folded([event], whole)
        given_out.update({path: part.content() for path, part in whole.take_retired().items()})
    given_out.update(whole.render())
    for start in range(0, len(events), piece):
        some = events[start : start + piece]
        pieces.fold(some, sums(some))
        on_disk.update(pieces.take_changed())
        pieces.settle()
        if start % 2:
            pieces = copied(pieces, RunFolders(kept))
    on_disk.update(pieces.render())
    assert on_disk == given_out
    assert shown(whole) == shown(whole)


@given(ACTS, requests())
@settings(max_examples=examples(40), deadline=None)
def test_each_artifact_of_a_finished_task_has_one_place(acts: list[Act], first: Act) -> None:
    events = history(acts, first)
    found = shown(folded(events))
    for event in events:
        if isinstance(event.data, TaskFinished):
            kept = [one for one in event.data.result.artifacts if not one.path.endswith("/out")]
            for one in kept:
                place = f"runs/{event.data.run_id}/artifacts/{one.path}"
                assert found[place] == BlobContent(one.checksum, one.size_bytes)
            assert not any(path.endswith(f"{event.data.result.task_id}/out") for path in found)
