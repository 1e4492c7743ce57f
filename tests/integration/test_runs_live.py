"""Runs through a live host: real engine, log, blobs and sandboxes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from pmagent.contracts.orchestra import PlanText
from pmagent.contracts.orchestra_events import (
    RunEnded,
    RunRefused,
    RunRequested,
    TaskAssigned,
    TaskAttemptFailed,
    TaskChange,
    TaskExited,
    TaskFinished,
    TasksChanged,
    TaskUnstarted,
)
from pmagent.events.event import Event
from pmagent.service.host import open_host
from pmagent.workspace.layout import Layout
from tests.support.orchestra import RUN, config, plan
from tests.support.sandboxes import needs_sandbox

pytestmark = [needs_sandbox, pytest.mark.slow]

SETTINGS = 'whitelist_tools: [echo, cat, ls, sh, python3, git, no-such-program]\n'


class Seen:
    """All events of one host's life."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def of(self, kind: type[Any]) -> list[Any]:
        """The payloads of this kind."""
        return [event.data for event in self.events if type(event.data) is kind]

    def ended(self) -> RunEnded | RunRefused:
        """How the run ended."""
        ends: list[RunEnded | RunRefused] = [*self.of(RunEnded), *self.of(RunRefused)]
        (end,) = ends
        return end

    def task(self, name: str) -> TaskFinished:
        """The result of the task of this name."""
        ids = {given.assignment.task_id for given in self.of(TaskAssigned) if given.name == name}
        (result,) = (one for one in self.of(TaskFinished) if one.result.task_id in ids)
        finished: TaskFinished = result
        return finished

    def said(self, workspace: Path, name: str, stream: str = "stdout") -> str:
        """The task's output, from the blob store."""
        artifacts = {one.path: one.checksum for one in self.task(name).result.artifacts}
        digest = artifacts[stream]
        return (Layout(workspace).blobs / digest[:2] / digest).read_text("utf-8")


def live(workspace: Path, given: PlanText, settings: str = SETTINGS, **more: Any) -> Seen:
    """Run the plan to its end."""
    seen = Seen()

    async def go() -> None:
        async with open_host(workspace, "orchestra.run") as host:
            await host.ready()

            def hear(events: Any, _sums: Any) -> None:
                seen.events.extend(events)

            host.runtime.listen(hear)
            asked = RunRequested(run_id=RUN, intent="live", plan=given, config=config(settings, base=0.05), **more)
            await host.ask(asked, RUN, {"run.ended", "run.refused"}, 60.0)

    anyio.run(go)
    return seen


def shell(script: str, **more: Any) -> dict[str, Any]:
    """Fields of a task that runs a script."""
    return {"tools": ["sh"], "inputs": {"args": ["-c", script], **more.pop("inputs", {})}, **more}


def test_a_task_reads_the_workspace_and_what_those_before_it_left(workspace: Path) -> None:
    given = plan(
        {"first": [], "second": ["first"]},
        first=shell("mkdir $ARTIFACTS/sub; echo kept > $ARTIFACTS/sub/file; cat README.md; echo done"),
        second=shell("cat /inputs/first/sub/file; tail -n 1 /inputs/first/stdout; ! echo x > /inputs/first/stdout"),
    )
    seen = live(workspace, given)
    end = seen.ended()
    assert isinstance(end, RunEnded)
    assert end.state == "done"
    assert seen.said(workspace, "second") == "kept\ndone\n"
    assert {one.path for one in seen.task("first").result.artifacts} == {"stdout", "stderr", "sub/file"}
    assert not list((workspace / ".pmagent" / "tasks").iterdir())


@pytest.mark.parametrize("writable", ["./runs", "./"])
def test_tasks_write_around_documents_that_are_written_meanwhile_and_not_these(workspace: Path, writable: str) -> None:
    script = (
        "touch runs/$ORCHESTRA_TASK && ! touch runs/$ORCHESTRA_TRACE_ID/report.md"
        " && ! touch jobs/$ORCHESTRA_TRACE_ID.json && ! mv jobs jobs2"
    )
    writing = shell(script, constraints={"sandbox": {"fs": "rw"}})
    names = "abcdefgh"
    given = plan({name: [] for name in names}, **dict.fromkeys(names, writing))
    settings = f"{SETTINGS}security: {{fs: {{allow_write: ['{writable}']}}}}\n"
    ended = live(workspace, given, settings=settings).ended()
    assert isinstance(ended, RunEnded)
    assert (ended.state, ended.reasons) == ("done", [])
    assert {path.name for path in (workspace / "runs").iterdir()} == {*names, RUN}
    assert not list(workspace.rglob("*.aside-*"))


def test_arguments_are_no_shells_and_variables_are_set(workspace: Path) -> None:
    given = plan(
        {"plain": [], "env": []},
        plain={"tools": ["echo"], "inputs": {"args": ["$HOME", "*", "> x"]}},
        env=shell('echo "$ORCHESTRA_TRACE_ID $ORCHESTRA_TASK $ORCHESTRA_ATTEMPT $MINE $WORKSPACE"; pwd',
                  inputs={"env": {"MINE": "own"}}),
    )
    seen = live(workspace, given)
    assert seen.said(workspace, "plain") == "$HOME * > x\n"
    assert seen.said(workspace, "env") == f"{RUN} env 1 own {workspace}\n{workspace}\n"


def test_files_lie_where_the_task_starts(workspace: Path) -> None:
    files = [{"path": "a/run.py", "content": "print(open('b.txt').read())"}, {"path": "b.txt", "content": "hü"}]
    given = plan({"one": []}, one={"tools": ["python3"], "inputs": {"args": ["a/run.py"], "files": files}})
    assert live(workspace, given).said(workspace, "one") == "hü\n"


def test_a_failing_task_is_retried_and_fails_those_behind_it(workspace: Path) -> None:
    given = plan(
        {"flaky": [], "bad": [], "behind": ["bad"], "far": ["behind"]},
        flaky=shell('test "$ORCHESTRA_ATTEMPT" -ge 2 || { echo not yet >&2; exit 75; }'),
        bad=shell("echo out; echo err >&2; exit 3", constraints={"max_retries": 1}),
    )
    seen = live(workspace, given)
    assert seen.task("flaky").attempts == 2
    assert (seen.task("bad").attempts, seen.task("bad").reason) == (2, "exit code 3: err")
    assert [one.reason for one in seen.of(TaskAttemptFailed)].count("exit code 75: not yet") == 1
    changes: list[TaskChange] = [change for one in seen.of(TasksChanged) for change in one.changes]
    assert [change.reason for change in changes if change.step == "give_up"] == ["dependency failed"] * 2
    end = seen.ended()
    assert isinstance(end, RunEnded)
    assert (end.state, end.done, end.failed) == ("failed", 1, 3)


def test_what_cannot_be_started_is_not_retried(workspace: Path) -> None:
    seen = live(workspace, plan({"one": []}, one={"tools": ["no-such-program"]}))
    (unstarted,) = seen.of(TaskUnstarted)
    assert "no-such-program" in unstarted.reason
    assert unstarted.mend
    assert seen.task("one").attempts == 1


def test_a_signal_is_a_failure_and_time_is_limited(workspace: Path) -> None:
    given = plan(
        {"killed": [], "late": []}, killed=shell("kill -9 $$", constraints={"max_retries": 0}),
        late=shell("exec sleep 60", constraints={"max_retries": 0, "max_duration_sec": 0.3}),
    )
    seen = live(workspace, given)
    assert seen.task("killed").result.metrics.exit_code is None
    assert seen.task("killed").reason.startswith("killed by signal KILL")
    assert seen.task("late").reason.startswith("timed out after ")


def test_a_dry_run_decides_all_and_starts_nothing(workspace: Path) -> None:
    given = plan({"one": [], "two": ["one"]}, one=shell("touch /tmp/never; exit 1"))
    seen = live(workspace, given, dry_run=True)
    end = seen.ended()
    assert isinstance(end, RunEnded)
    assert (end.state, end.done) == ("done", 2)
    assert seen.said(workspace, "one") == "[dry run] nothing was started\n"
    assert {one.duration_ms for one in seen.of(TaskExited)} == {0}


def test_what_a_task_writes_is_masked_and_cannot_harm(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "s3cr3t-Value-0123456789"
    monkeypatch.setenv("SOME_API_KEY", secret)
    half = len(secret) // 2
    script = (
        f"printf '%s' '{secret[:half]}'; printf '%s\\n' '{secret[half:]}'; "
        f"printf '{secret[:half]}' > $ARTIFACTS/parts; printf '{secret[half:]}' >> $ARTIFACTS/parts; "
        "printf '\\033]0;title\\007\\033[31mred\\000\\377\\n' >&2; exit 1"
    )
    seen = live(workspace, plan({"one": []}, one=shell(script, constraints={"max_retries": 0})))
    (exited,) = seen.of(TaskExited)
    assert exited.last_lines == ["red\ufffd"]
    assert secret not in seen.said(workspace, "one")
    assert "***REDACTED***" in seen.said(workspace, "one")
    for folder, _, names in os.walk(workspace / ".pmagent"):
        for name in names:
            path = Path(folder) / name
            if path.is_file():
                assert secret.encode() not in path.read_bytes(), path
